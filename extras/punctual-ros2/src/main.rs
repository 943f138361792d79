//! A node of ROS 2 for the topics and parameters of a Punctual app: a separate process, which
//! attaches to the app.
//!
//! ```text
//! punctual-ros2 APP [NODE]
//! ```

mod discovery;
mod filter;
mod interfaces;
mod node;
mod parameters;
mod raw;
mod readers;
mod values;

fn main() -> std::process::ExitCode {
    punctual_transport::run::<node::Ros2>()
}

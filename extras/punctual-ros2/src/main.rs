//! A node of ROS 2 for the topics and parameters of a Punctual app: a separate process, which
//! attaches to the app.
//!
//! ```text
//! punctual-ros2 APP [NODE] [--ros-args ARGUMENTS]
//! ```

mod arguments;
mod discovery;
mod events;
mod filter;
mod interfaces;
mod node;
mod parameters;
mod qos;
mod raw;
mod readers;
mod sim_time;
mod user_data;
mod values;

fn main() -> std::process::ExitCode {
    punctual_transport::run::<node::Ros2>()
}

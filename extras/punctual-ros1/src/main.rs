//! A node of ROS 1 for the topics of a Punctual app: a separate process, which attaches to the app.
//!
//! ```text
//! punctual-ros1 APP [NODE]
//! ```
//!
//! ROS 1 has reached its end of life; this program is for machines that still run it.

mod description;
mod node;

fn main() -> std::process::ExitCode {
    punctual_transport::run::<node::Node>()
}

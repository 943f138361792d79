//! A node of Zenoh for the topics of a Punctual app: a separate process, which attaches to the app.
//!
//! ```text
//! punctual-zenoh APP [--listen ENDPOINT | --connect ENDPOINT | --config FILE]
//! ```

mod node;

fn main() -> std::process::ExitCode {
    punctual_transport::run::<node::Zenoh>()
}

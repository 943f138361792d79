//! A node of Zenoh for the topics of a Punctual app: a separate process, which attaches to the app.
//!
//! ```text
//! punctual-zenoh APP [--ros] [--listen ENDPOINT | --connect ENDPOINT | --config FILE] [--tls-ca FILE] ...
//! ```

mod node;
mod place;
mod rmw;

fn main() -> std::process::ExitCode {
    punctual_transport::run::<node::Zenoh>()
}

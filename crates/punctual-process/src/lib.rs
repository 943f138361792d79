//! Processes and threads of Linux, for the crates of Punctual.
//!
//! | module | contents |
//! |---|---|
//! | `child` | children that start with default signal dispositions, and waits for them with a limit and an escalation |
//! | `scheduling` | scheduling policies by direct system calls, since musl's functions for them return `ENOSYS` |
//! | `signals` | dispositions and masks that a process inherits from its parent |
//! | `kernel` | names of the kernel, empty if a sandbox refuses the call |
//! | `limits` | resource limits, read and set without a panic if a sandbox refuses the call |
//! | `restart` | when a program that has ended is started again |
//!
//! ```rust
//! use std::process::Command;
//! use std::time::Duration;
//!
//! use punctual_process::child::BoundedCommand;
//!
//! let output = Command::new("echo").arg("done").output_within(Duration::from_secs(10))?;
//! assert_eq!(output.stdout, b"done\n");
//! # Ok::<(), std::io::Error>(())
//! ```

pub mod child;
pub mod kernel;
pub mod limits;
pub mod restart;
pub mod scheduling;
pub mod signals;

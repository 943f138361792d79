//! Files that privileged programs create safely in directories of other users.
//!
//! A program that runs as root must assume that another user can write the directory in which it
//! creates a file. That user may plant a symbolic link, a FIFO or a directory under the name, or
//! exchange one while the program runs. This crate therefore
//!
//! * resolves a path once, to the descriptor of a directory, and follows a symbolic link on the way
//!   only if it belongs to root or to the caller;
//! * creates files relative to that descriptor, with `O_EXCL | O_NOFOLLOW` and mode 0600, under a
//!   temporary name;
//! * gives a file its name by `renameat` when it is complete, which replaces a link instead of
//!   following it.
//!
//! ```
//! use std::io::Write;
//!
//! use punctual_files::NewFile;
//!
//! let path = std::env::temp_dir().join(format!("punctual-files-{}.csv", std::process::id()));
//! let mut file = NewFile::create(&path)?;
//! file.write_all(b"time,angle\n")?;
//! assert!(!path.exists(), "it is not complete");
//! file.commit()?;
//! assert!(path.exists());
//! # std::fs::remove_file(path)?;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! [`Owned`] answers the question whether the process that made a directory still runs: its owner
//! holds a lock on the directory, which the kernel releases when the owner dies, in any PID
//! namespace.
//!
//! [`allocate`] reserves the memory of a file that processes share.
//!
//! [`read`], [`read_text`] and [`read_regular`] read files of other people with a limit.

#![forbid(unsafe_code)]

mod allocate;
mod directory;
mod input;
mod new_file;
mod owned;
mod resolve;

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

pub use allocate::allocate;
pub use directory::Directory;
pub use input::{read, read_regular, read_text};
pub use new_file::{NewFile, Output, check, create_new, stream, unnamed, write};
pub use owned::{Owned, is_locked, lock, lock_holder};

/// Returns a unique number for names. An attacker who guesses it gains nothing: names are created
/// exclusively.
fn unique() -> u64 {
    RandomState::new().build_hasher().finish()
}

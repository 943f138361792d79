//! A program without Linux on a CPU that Linux gave up: 64-bit ARM with PSCI, with the kernel
//! module in `module/`.
//!
//! [`check()`] reports whether the machine supports it, [`Image`] reads the program, [`give_up`]
//! takes the CPU from Linux, with a journal as for any isolation, and [`Device`] starts the
//! program, shows its output, figures and jobs, and ends it. [`hand_over`] lets a program on Linux
//! share memory with it. `docs/book/src/guides/amp.md` lists the requirements.

mod check;
mod clock;
mod companion;
mod device;
mod image;
mod layout;
mod observe;

pub use self::check::{Refusal, check};
pub use self::companion::hand_over;
pub use self::device::{Device, DeviceError, Options, State};
pub use self::image::{Image, ImageError};
pub use self::layout::VERSION;

use crate::change::{Change, Journal, JournalError, Settings, Store};
use crate::isolate::JOURNAL;

/// Takes a CPU offline, recorded in the journal of isolations: undoing brings it online again. The
/// caller holds the journal as long as it uses the CPU.
///
/// # Errors
/// Another process has isolated CPUs already, or the kernel refuses.
pub fn give_up(cpu: usize, store: &Store, settings: &mut dyn Settings) -> Result<Journal, JournalError> {
    let mut journal = store.begin(JOURNAL, &format!("CPU {cpu} without Linux"), false, settings)?;
    let change = Change::file(&format!("/sys/devices/system/cpu/cpu{cpu}/online"), "0");
    if let Err(error) = journal.apply(&change, settings) {
        store.undo(JOURNAL, settings)?;
        return Err(error);
    }
    Ok(journal)
}

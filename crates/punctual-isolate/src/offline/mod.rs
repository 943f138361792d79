//! A program without Linux on a CPU that Linux gave up: 64-bit ARM with PSCI, with the kernel
//! module in `module/`.
//!
//! [`check()`] reports whether the machine supports it, [`Image`] reads the program, [`give_up`]
//! takes the CPU from Linux, with a journal as for any isolation, and [`Device`] starts the
//! program, shows its output, figures and jobs, and ends it. [`hand_over`] lets a program on Linux
//! share memory with it. `docs/book/src/guides/amp.md` lists the requirements.

mod device;
mod image;
mod layout;
mod observe;

pub use self::device::{Device, DeviceError, Options, State, hand_over};
pub use self::image::{Image, ImageError};
pub use self::layout::VERSION;

use crate::change::{Change, Journal, JournalError, Settings, Store};
use crate::cpus::Cpus;
use crate::isolate::JOURNAL;
use crate::tree::{Lack, Tree};

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

/// The reason why a machine cannot run a program without Linux. Nothing has been changed then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The processor is not supported.
    #[error(
        "this machine is {0}: only 64-bit ARM can start a CPU that Linux gave up; isolate the CPU instead: \
         punctual isolate run --cpus {1}, with an app that polls"
    )]
    Processor(String, usize),
    /// The CPU does not exist.
    #[error("CPU {0} does not exist; existing: {1}")]
    Absent(usize, Cpus),
    /// The first CPU.
    #[error("CPU 0 stays with Linux, whose clock and firmware may rely on it: choose another CPU")]
    First,
    /// The last online CPU.
    #[error(
        "CPU {0} is the only online CPU, and Linux needs one: bring another one online first, or boot with more"
    )]
    Only(usize),
    /// The kernel cannot take it offline.
    #[error(
        "the kernel cannot take CPU {0} offline: there is no /sys/devices/system/cpu/cpu{0}/online; use a kernel with \
         CONFIG_HOTPLUG_CPU, on a machine whose firmware can turn the CPU off"
    )]
    NoHotplug(usize),
    /// The firmware holds CPUs in a spin table.
    #[error(
        "the firmware starts CPUs by a spin table, as on a Raspberry Pi 4, and cannot take one back; make it load \
         TF-A as `armstub`, which provides PSCI (docs/book/src/guides/amp.md)"
    )]
    SpinTable,
    /// The firmware cannot start a CPU.
    #[error(
        "the device tree has no PSCI, which is needed for starting a CPU; machines that boot only by ACPI are not \
         supported"
    )]
    NoPsci,
    /// The module is not loaded.
    #[error(
        "the module punctual_cpu is not loaded: run modprobe punctual_cpu; docs/book/src/guides/amp.md explains how to build it{0}"
    )]
    NoModule(&'static str),
    /// The module belongs to another release.
    #[error(
        "the module punctual_cpu has version {0}, not {VERSION}: build it from the sources of this release, \
         rmmod punctual_cpu, and load it"
    )]
    Module(String),
}

const CPUS: &str = "/sys/devices/system/cpu";
const FIRMWARE: &str = "/sys/firmware/devicetree/base";

/// Checks that a program can run on a CPU that Linux gives up.
///
/// # Errors
/// Returns the reason if it cannot.
pub fn check(tree: &Tree, cpu: usize) -> Result<(), Refusal> {
    let arch = tree.text("/proc/sys/kernel/arch").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    if arch != "aarch64" {
        return Err(Refusal::Processor(arch, cpu));
    }
    let list = |name: &str| tree.text(&format!("{CPUS}/{name}")).map(|list| Cpus::of_list(&list));
    let (present, online) = (list("present").unwrap_or_default(), list("online").unwrap_or_default());
    if !present.has(cpu) {
        return Err(Refusal::Absent(cpu, present));
    }
    if cpu == 0 {
        return Err(Refusal::First);
    }
    if online.has(cpu) && online.len() == 1 {
        return Err(Refusal::Only(cpu));
    }
    // Strings in the device tree end with a zero.
    let firmware = |name: &str| {
        tree.text(&format!("{FIRMWARE}/{name}")).map(|text| text.trim_end_matches('\0').to_owned())
    };
    let nodes = tree.list(&format!("{FIRMWARE}/cpus"));
    let starts = |way: &str| {
        nodes.iter().any(|node| firmware(&format!("cpus/{node}/enable-method")).as_deref() == Some(way))
    };
    if starts("spin-table") {
        return Err(Refusal::SpinTable);
    }
    if firmware("psci/method").is_none() {
        return Err(Refusal::NoPsci);
    }
    if matches!(tree.read(&format!("{CPUS}/cpu{cpu}/online")), Err(Lack::Absent)) {
        return Err(Refusal::NoHotplug(cpu));
    }
    match tree.text("/sys/module/punctual_cpu/version") {
        Some(version) if version == VERSION.to_string() => Ok(()),
        Some(version) => Err(Refusal::Module(version)),
        None => {
            let lockdown = tree.text("/sys/kernel/security/lockdown").unwrap_or_default();
            let is_locked = lockdown.contains("[integrity]") || lockdown.contains("[confidentiality]");
            Err(Refusal::NoModule(if is_locked {
                "; the kernel is locked down, so the module must be signed with a key enrolled in the kernel (mokutil), or \
                 Secure Boot must be off"
            } else {
                ""
            }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine that supports it.
    const GOOD: &str = "==> /proc/sys/kernel/arch <==\naarch64
==> /sys/devices/system/cpu/present <==\n0-3
==> /sys/devices/system/cpu/online <==\n0-3
==> /sys/devices/system/cpu/cpu3/online <==\n1
==> /sys/firmware/devicetree/base/cpus/cpu@0/enable-method <==\npsci
==> /sys/firmware/devicetree/base/psci/method <==\nsmc
==> /sys/module/punctual_cpu/version <==\n2
";

    fn refused(change: impl Fn(String) -> String, cpu: usize) -> Refusal {
        check(&Tree::parse(&change(GOOD.to_owned())), cpu).unwrap_err()
    }

    #[test]
    fn accepts_complete_machine() {
        assert_eq!(check(&Tree::parse(GOOD), 3), Ok(()));
        // Another process took it offline before.
        assert_eq!(check(&Tree::parse(&GOOD.replace("online <==\n0-3", "online <==\n0-2")), 3), Ok(()));
    }

    #[test]
    fn reports_missing_requirement_and_remedy() {
        let replaced = |from: &'static str, to: &'static str| {
            move |tree: String| {
                assert!(tree.contains(from), "{from}");
                tree.replace(from, to)
            }
        };
        let same = |tree| tree;
        assert_eq!(refused(replaced("aarch64", "x86_64"), 3), Refusal::Processor("x86_64".into(), 3));
        assert_eq!(refused(same, 4), Refusal::Absent(4, Cpus::of_list("0-3")));
        assert_eq!(refused(same, 0), Refusal::First);
        assert_eq!(refused(replaced("online <==\n0-3", "online <==\n3"), 3), Refusal::Only(3));
        assert_eq!(refused(replaced("cpu3/online", "cpu2/online"), 3), Refusal::NoHotplug(3));
        assert_eq!(refused(replaced("method <==\npsci", "method <==\nspin-table\0"), 3), Refusal::SpinTable);
        assert_eq!(refused(replaced("base/psci/", "base/other/"), 3), Refusal::NoPsci);
        assert_eq!(refused(replaced("version <==\n2", "version <==\n7"), 3), Refusal::Module("7".into()));
        let without = replaced("/sys/module/punctual_cpu/", "/sys/module/other/");
        assert_eq!(refused(without, 3), Refusal::NoModule(""));
        let locked = |tree| {
            without(tree) + "==> /sys/kernel/security/lockdown <==\nnone [integrity] confidentiality\n"
        };
        assert!(refused(locked, 3).to_string().contains("signed"));
        for cause in [Refusal::SpinTable, Refusal::NoModule(""), Refusal::Processor("x86_64".into(), 3)] {
            let text = cause.to_string();
            assert!(["TF-A", "modprobe", "polls"].iter().any(|advice| text.contains(advice)), "{text}");
        }
    }
}

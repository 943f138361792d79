//! The emulated machine: the options of QEMU.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use xtask_support::Result;

use crate::arch::Arch;
use crate::kernels::Kernel;
use crate::tools;

/// The configuration of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Machine {
    pub(crate) cpus: u32,
    /// In MB.
    pub(crate) memory: u32,
    /// `true` if time is counted in instructions and two runs are identical; otherwise it is the
    /// host's time.
    pub(crate) counted: bool,
    /// `true` if it has a network, in which this machine is [`HOST`](super::stage::HOST).
    pub(crate) network: bool,
    /// `true` for the [other machine](Arch::other_machine) of its architecture.
    pub(crate) other: bool,
    /// Additional kernel parameters.
    pub(crate) append: String,
}

/// The way to start the command; the guest's first process uses the names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The guest mounts a host directory from the start.
    Share,
    /// It mounts one after the command has ended.
    Late,
    /// Like [`Self::Share`], with a prompt in our terminal.
    Shell,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Self::Share => "share",
            Self::Late => "late",
            Self::Shell => "shell",
        }
    }
}

/// The host files that a machine uses.
pub(crate) struct Files<'a> {
    pub(crate) archive: &'a Path,
    /// The directory that the guest mounts.
    pub(crate) shared: &'a Path,
    /// The file for the console output.
    pub(crate) console: &'a Path,
}

impl Machine {
    /// Returns the command that starts it.
    pub(crate) fn command(&self, kernel: &Kernel, mode: Mode, files: &Files) -> Result<Command> {
        let [qemu, setpriv] = tools::require([kernel.arch.qemu(), "setpriv"])?;
        // The machine ends with us even if we are killed.
        let mut command = Command::new(setpriv);
        command.args(["--pdeathsig", "KILL"]).arg(qemu);
        let machine = if self.other { kernel.arch.other_machine() } else { kernel.arch.machine() };
        command.args(machine).args(["-nodefaults", "-display", "none", "-no-reboot"]);
        // Its threads have names, so that a trace of this machine identifies the guest's CPUs.
        command.args(["-name", "lab,debug-threads=on"]);
        command.args(["-smp", &self.cpus.to_string(), "-m", &self.memory.to_string()]);
        // An instruction takes 2 ns of guest time. Time starts at a fixed date, with a fixed seed,
        // and an idle guest does not wait for the host's clock.
        if self.counted {
            command.args(["-accel", "tcg,thread=single", "-icount", "shift=1,sleep=off,align=off"]);
            command.args(["-rtc", "base=2024-01-01T00:00:00,clock=vm", "-seed", "1"]);
        } else {
            command.args(["-accel", "tcg,thread=multi"]);
        }
        command.arg("-kernel").arg(kernel.vmlinux()).arg("-initrd").arg(files.archive);
        command.args(["-append", &self.kernel_arguments(kernel.arch, mode)]);

        let console = escaped(files.console);
        let chardev = match mode {
            Mode::Shell => format!("stdio,id=console,signal=off,logfile={console}"),
            Mode::Share | Mode::Late => format!("file,id=console,path={console}"),
        };
        command.args(["-chardev", &chardev, "-serial", "chardev:console"]);
        let shared = escaped(files.shared);
        command.args(["-fsdev", &format!("local,id=shared,path={shared},security_model=none")]);
        command.args(["-device", "virtio-9p-pci,fsdev=shared,mount_tag=share"]);
        command.args(kernel.arch.devices());
        if self.network {
            // QEMU's user-mode network, which needs no setup here. The guest does not boot from it,
            // so it needs no firmware.
            command.args(["-netdev", "user,id=network"]);
            command.args(["-device", "virtio-net-pci,netdev=network,romfile="]);
        }
        Ok(command)
    }

    fn kernel_arguments(&self, arch: Arch, mode: Mode) -> String {
        let mut arguments = format!("{} quiet panic=-1 lab={}", arch.parameters(), mode.name());
        // Counted CPUs take turns, and a turn lasts until a timer is due: with idle CPUs without a
        // tick up to 100 ms, which the other CPUs see as a nonexistent wait. A tick on each CPU,
        // not simultaneous, keeps turns at 4 ms divided by the number of CPUs.
        if self.counted && self.cpus > 1 {
            arguments += " nohz=off skew_tick=1";
        }
        // The guest's time-stamp counter is the host's. With its rate given, the guest does not
        // calibrate it against a timer that a busy host delays, which would make its clock wrong by
        // a factor.
        if !self.counted
            && arch == Arch::Amd64
            && let Some(khz) = time_stamp_khz()
        {
            arguments += &format!(" tsc_early_khz={khz}");
        }
        // Last, so that they take precedence.
        if !self.append.is_empty() {
            arguments += &format!(" {}", self.append);
        }
        arguments
    }
}

/// Escapes a path in QEMU's options.
fn escaped(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

/// Returns the rate of the processor's time-stamp counter, in kHz.
#[cfg(target_arch = "x86_64")]
fn time_stamp_khz() -> Option<u64> {
    let (ticks, begun) = time_stamp();
    thread::sleep(Duration::from_millis(50));
    let (later, ended) = time_stamp();
    let nanoseconds = ended.duration_since(begun).as_nanos();
    let khz = u128::from(later.checked_sub(ticks)?) * 1_000_000 / nanoseconds;
    u64::try_from(khz).ok().filter(|&khz| khz > 0)
}

#[cfg(not(target_arch = "x86_64"))]
fn time_stamp_khz() -> Option<u64> {
    None
}

/// Reads the counter and the time, as closely together as several attempts allow.
#[cfg(target_arch = "x86_64")]
fn time_stamp() -> (u64, Instant) {
    let read = || {
        let before = Instant::now();
        // SAFETY: every x86-64 processor has the instruction, and it only reads.
        let ticks = unsafe { std::arch::x86_64::_rdtsc() };
        (before.elapsed(), ticks, before)
    };
    let (_, ticks, time) = (0..20).map(|_| read()).min_by_key(|&(gap, ..)| gap).expect("there were attempts");
    (ticks, time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hides_host_clock_from_counted_machines() {
        let mut machine = Machine { cpus: 1, memory: 256, counted: true, ..Machine::default() };
        let arguments = machine.kernel_arguments(Arch::Amd64, Mode::Late);
        assert!(arguments.ends_with("lab=late"), "{arguments}");
        machine.append = "quiet nosmt".to_owned();
        assert!(machine.kernel_arguments(Arch::Amd64, Mode::Late).ends_with("lab=late quiet nosmt"));
    }

    #[test]
    fn gives_no_time_stamp_counter_to_arm() {
        let machine = Machine { cpus: 1, memory: 256, ..Machine::default() };
        let arguments = machine.kernel_arguments(Arch::Arm64, Mode::Share);
        assert!(arguments.starts_with("console=ttyAMA0 ") && !arguments.contains("tsc"), "{arguments}");
    }

    #[test]
    fn escapes_commas_in_paths() {
        assert_eq!(escaped(Path::new("/a,b")), "/a,,b");
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn measures_plausible_rate() {
        let khz = time_stamp_khz().unwrap();
        assert!((100_000..20_000_000).contains(&khz), "{khz} kHz");
    }
}

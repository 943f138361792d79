//! A program on a CPU without Linux, next to Linux, on 64-bit ARM: the guarantees of `punctual
//! isolate run --offline`.

mod dies;
mod seen;
mod x86;

use std::path::{Path, PathBuf};

use xtask_support::process::{self, Outcome};
use xtask_support::{Result, cargo};

use super::{Case, Setup, demand};
use crate::arch::Arch;
use crate::driver::board::cross_cargo;
use crate::driver::stage::in_guest;
use crate::kernels::modules;

const ON: &[Setup] = &[Setup::ARM_THREE];

/// Of 1536 MB from 1 GB on, the part that Linux uses, and the start of the rest.
pub(crate) const KEPT: &str = "mem=1534M";
const KEPT_AT: u64 = (1024 + 1534) << 20;

/// The feature that a board lacks.
const LACKING: &str = "the module punctual_cpu, and a CPU that no other program needs";

/// The number of times that a CPU is taken and returned; on a busy host each takes a quarter of a
/// second.
const CYCLES: usize = 250;

/// The number of round trips in each of three runs.
const ROUNDS: usize = 20_000;

/// Returns a Linux program for the guest.
fn program(name: &str) -> PathBuf {
    cargo::target_dir().join("aarch64-unknown-linux-gnu/debug").join(name)
}

/// Returns the program on Linux of a pair.
fn companion(name: &str) -> PathBuf {
    program(&format!("examples/{name}"))
}

/// Returns a program for a CPU without Linux.
fn image(name: &str) -> PathBuf {
    cargo::target_dir().join("bare/amp/aarch64-unknown-none/release").join(name)
}

/// Returns `true` for a program that [`build`] builds.
pub(crate) fn is_one(path: &Path) -> bool {
    let target = cargo::target_dir();
    path.starts_with(target.join("aarch64-unknown-linux-gnu")) || path.starts_with(target.join("bare/amp"))
}

/// Builds all of them.
pub(crate) fn build() -> Result {
    let cross = || cross_cargo(Arch::Arm64.uname());
    cargo::build(cross()?.args(["build", "-p", "punctual-cli"]))?;
    // Measured code is optimized like the image; other code need not be.
    let optimized = ["--config", "profile.dev.package.punctual-lab.opt-level=3"];
    let mut examples = cross()?;
    examples.args(["build", "-p", "punctual-lab"]).args(optimized);
    for name in ["amp", "level_ui", "gimbal_ui"] {
        examples.args(["--example", name]);
    }
    cargo::build(&mut examples)?;
    // With any compiler for the target.
    let mut bare = cargo::command();
    bare.args(["run", "--quiet", "--package", "xtask", "--", "bare", "amp"]);
    process::succeed(bare.env("CARGO_TARGET_DIR", cargo::target_dir()))?;
    Ok(())
}

/// The cases of this file.
pub(super) fn cases() -> Vec<Case> {
    vec![command(), pair(), dies::dies(), seen::seen(), gimbal(), cycles(), exchange(), other(), x86::sipi()]
}

/// Returns a case with the module, after which the kernel's log has no errors and Linux has all its
/// CPUs. In the script, a variable with the name of each program is its path, and `$module` that of
/// the module.
fn case(
    name: &str,
    script: &str,
    programs: &[PathBuf],
    judge: impl Fn(&Outcome) -> Result + 'static,
) -> Case {
    let named =
        |path: &PathBuf| format!("{}={}; ", path.file_name().unwrap_or_default().display(), in_guest(path));
    let script = format!(
        "{variables}module={module}
        [ -d /sys/module/punctual_cpu ] || insmod $module || exit 9
        dmesg -c >/tmp/kernel
        {script}
        echo \"online $(cat /sys/devices/system/cpu/online)\"
        dmesg >/tmp/kernel; grep -iE '{COMPLAINTS}' /tmp/kernel && echo complaints
        true",
        variables = programs.iter().map(named).collect::<String>(),
        module = modules::in_guest("punctual_cpu")
    );
    let judge = move |outcome: &Outcome| {
        judge(outcome)?;
        demand(outcome.stdout.lines().any(|line| line == "online 0-2"), "Linux lacks a CPU")?;
        demand(!outcome.stdout.ends_with("complaints\n"), "the kernel complains")
    };
    let mut case = Case::new(name, ON, script, None, judge).lacking(LACKING);
    for program in programs {
        case = case.with(program);
    }
    case
}

/// Words in the kernel's log that indicate a problem.
const COMPLAINTS: &str = "warning|bug:|oops|stall|lockup|unexpected|call trace|error|failed|hung";

/// `punctual isolate run --offline` from the user's perspective: an app runs until it is asked to
/// end, a fault and an endless job return the CPU, Linux cannot use it meanwhile, and killing
/// `punctual` ends the program.
fn command() -> Case {
    let script = "cd /tmp
        run=\"$punctual isolate run --offline --heartbeat 30s --cpus 2 --\"
        until_said() { until grep -q \"$1\" out || ! kill -0 $!; do usleep 20000; done; }
        $run $periodic >out 2>&1 &
        until_said 'on CPU 2'
        echo \"meanwhile $(cat /sys/devices/system/cpu/online)\"
        echo 1 2>/dev/null >/sys/devices/system/cpu/cpu2/online || echo 'kept away'
        $run $periodic 2>second; echo \"second $?\"
        kill -INT $!; wait $!; echo \"ended $?\"; grep -E 'safe after|^tick' out
        $run $fault >out 2>&1; echo \"fault $?\"; grep 'data abort' out
        $run $stuck >out 2>&1 &
        until_said begins
        kill -TERM $!; wait $!; echo \"stuck $?\"; grep 'did not within' out
        $run $periodic >out 2>&1 &
        until_said 'on CPU 2'
        kill -KILL $!; wait $! 2>/dev/null
        $punctual isolate status
        for cpu in 0 7; do
            $punctual isolate run --offline --cpus $cpu -- $periodic 2>&1; echo \"refused $?\"
        done
        $run $punctual 2>&1; echo \"refused $?\"
        rmmod punctual_cpu; $run $periodic 2>&1; echo \"refused $?\"; insmod $module";
    let programs = [program("punctual"), image("periodic"), image("fault"), image("stuck")];
    case("a CPU is given up for a program and comes back", script, &programs, ran)
}

/// Checks the output of [`command`].
fn ran(outcome: &Outcome) -> Result {
    let printed = |text: &str| outcome.stdout.lines().filter(|line| line.contains(text)).count();
    demand(printed("meanwhile 0-1") == 1, "Linux had the CPU")?;
    demand(printed("kept away") == 1, "Linux took it back while the program ran")?;
    demand(printed("second 2") == 1, "a second program was not refused")?;
    demand(printed("ended 0") == 1 && printed("safe after") == 1, "it did not shut down")?;
    let ticks = outcome
        .stdout
        .lines()
        .find_map(|line| line.split_once("safe after ")?.1.split(' ').next()?.parse().ok());
    demand(ticks.is_some_and(|ticks: u32| ticks > 0), "its task did not run")?;
    demand(printed("fault 101") == 1 && printed("data abort") == 1, "a fault was not said")?;
    demand(printed("stuck 101") == 1 && printed("did not within") == 1, "a job without an end went on")?;
    demand(printed("nothing is taken") == 1, "after a kill something is left")?;
    demand(printed("refused 2") == 4, "something was not refused")?;
    demand(printed("CPU 0 stays with Linux") == 1, "CPU 0 was not refused as such")?;
    demand(printed("CPU 7 does not exist") == 1, "a CPU that is not there was not refused as such")?;
    demand(printed("modprobe punctual_cpu") == 1, "a missing module was not named")
}

/// A program on the CPU and one on Linux: every end and fault of one ends the other one as well,
/// and each reports.
fn pair() -> Case {
    let script = "cd /tmp
        run=\"$punctual isolate run --offline --heartbeat 30s --grace 10s --cpus 2 -- $level\"
        for how in ends other-ends panic other-panics abort exit hang other-hangs; do
            $run $level_ui $how >$how 2>&1; echo \"$how $?, safe $(grep -c 'control: safe' $how), ui $(grep -c 'ui: ends' $how)\"
        done
        grep 'the level is 0.[1-9]' ends; grep -E '^(control|rung|watch|show) ' ends
        grep 'is silent' hang other-hangs
        $run $level_ui runs >out 2>&1 &
        until grep -q 'ui: 2' out || ! kill -0 $!; do usleep 20000; done
        kill -KILL $!; wait $! 2>/dev/null; usleep 3000000; grep -c 'ui: ends' out; $punctual isolate status
        $level_ui; echo \"alone $?\"
        $run /nowhere; echo \"no program $?\"";
    case("programs on both sides end together", script, &level(), ended_together)
}

/// Returns the command, and the level controller with its user interface.
fn level() -> [PathBuf; 3] {
    [program("punctual"), image("level"), companion("level_ui")]
}

/// The same with a GICv2, firmware that is called by SMC and starts programs at EL2, and memory
/// unknown to Linux, which the other machine does not have.
fn other() -> Case {
    let script = format!(
        "rmmod punctual_cpu
        insmod $module phys=$((0x44000000)) || echo 'memory of Linux is refused'
        insmod $module phys={KEPT_AT} || exit 9
        dmesg | grep 'punctual_cpu: version'; cd /tmp
        for how in ends other-ends other-panics other-faults; do
            $punctual isolate run --offline --heartbeat 30s --grace 10s --cpus 2 -- $level $level_ui $how >$how 2>&1
            echo \"$how $?, safe $(grep -c 'control: safe' $how), ui $(grep -c 'ui: ends' $how)\"
        done
        rmmod punctual_cpu; insmod $module"
    );
    let judge = |outcome: &Outcome| {
        let printed = |text: &str| outcome.stdout.lines().any(|line| line.contains(text));
        demand(printed("memory of Linux is refused"), "memory of Linux was taken")?;
        let place = format!("by SMC, 2 MB at {KEPT_AT:#x}");
        demand(printed("GICv2,") && printed(&place), "it is not the other machine")?;
        for line in [
            "ends 0, safe 1, ui 1",
            "other-ends 0, safe 1, ui 1",
            "other-panics 101, safe 0, ui 1",
            "other-faults 101, safe 0, ui 1",
        ] {
            demand(outcome.stdout.lines().any(|printed| printed == line), line)?;
        }
        Ok(())
    };
    let case = case("programs run on both sides on another machine", &script, &level(), judge);
    Case { on: &[Setup::ARM_OTHER], ..case }
}

/// The gimbal: its controllers on the CPU without Linux, setpoints and the recording on Linux.
///
/// Time is that of the host, so the lateness of its jobs is printed but not judged.
fn gimbal() -> Case {
    let script = "cd /tmp
        $punctual isolate run --offline --heartbeat 30s --grace 10s --cpus 2 -- $gimbal $gimbal_ui 1 record.csv 2>&1
        echo \"ended $?, $(grep -c , record.csv) lines\"";
    let programs = [program("punctual"), image("gimbal"), companion("gimbal_ui")];
    let judge = |outcome: &Outcome| {
        let number = |before: &str, after: &str| {
            let line = outcome.stdout.lines().find_map(|line| line.strip_prefix(before)?.split_once(after));
            line.and_then(|(number, _)| number.parse::<u32>().ok()).unwrap_or(0)
        };
        let printed = |text: &str| outcome.stdout.lines().any(|line| line.contains(text));
        let recorded = number("ui: ", " periods recorded");
        demand(recorded > 0 && number("ended 0, ", " lines") == recorded, "the recording lacks periods")?;
        demand(number("control: ", " exchanges, of which failed: 0; off: true") > 0, "its bus failed")?;
        demand(printed("rad of 0.500, tilt at"), "the setpoints did not come across")?;
        for task in ["current", "sample", "position", "setpoint", "recording"] {
            let row = outcome.stdout.lines().any(|line| line.split_whitespace().next() == Some(task));
            demand(row, &format!("the reports lack `{task}`"))?;
        }
        Ok(())
    };
    case("the gimbal runs as two programs", script, &programs, judge).saying(|outcome| {
        let line =
            |name: &str| outcome.stdout.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        Ok(format!("{}; {}", line("ui: pan"), line("sample ")))
    })
}

/// Checks the output of [`pair`].
fn ended_together(outcome: &Outcome) -> Result {
    let printed = |text: &str| outcome.stdout.lines().filter(|line| line.contains(text)).count();
    for (how, what) in [
        ("ends 0, safe 1, ui 1", "an end on Linux"),
        ("other-ends 0, safe 1, ui 1", "an end on the other CPU"),
        ("panic 101, safe 1, ui 1", "a panic on Linux"),
        ("other-panics 101, safe 0, ui 1", "a panic on the other CPU"),
        ("abort 1, safe 1, ui 0", "a program on Linux that aborts"),
        ("exit 7, safe 1, ui 0", "a program on Linux that exits"),
        ("hang 1, safe 1, ui 0", "a program on Linux that hangs"),
        ("other-hangs 101, safe 0, ui 1", "a program on the other CPU that hangs"),
    ] {
        demand(outcome.stdout.lines().any(|line| line == how), what)?;
    }
    demand(printed("the level is 0.") > 0, "the wanted level did not reach the controller")?;
    for task in ["control ", "rung ", "watch ", "show "] {
        let row = outcome.stdout.lines().any(|line| line.starts_with(task));
        demand(row, &format!("the reports lack `{task}`"))?;
    }
    demand(printed("the user interface is silent") == 1, "a stall on Linux was not detected")?;
    demand(printed("the controller is silent") == 1, "a stall on the other CPU was not detected")?;
    demand(printed("nothing is taken") == 1, "after a kill something is left")?;
    demand(printed("alone 1") == 1 && printed("no program 2") == 1, "a program alone was not refused")
}

/// A CPU is taken and returned many times.
fn cycles() -> Case {
    let script = format!("$amp cycles $periodic 2 {CYCLES}");
    let judge = |outcome: &Outcome| {
        let whole = outcome.stdout.starts_with(&format!("{CYCLES} cycles\n"));
        demand(whole, "a cycle failed")
    };
    let programs = [companion("amp"), image("periodic")];
    case("a CPU is given up and taken back 250 times", &script, &programs, judge).saying(|outcome| {
        let line =
            |name: &str| outcome.stdout.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        Ok(format!("{}; {}", line("start:"), line("giving back:")))
    })
}

/// The round trip through memory, with the answer of each round.
fn exchange() -> Case {
    let script = format!("$amp exchange $echo 2 {ROUNDS}");
    let judge = |outcome: &Outcome| {
        let lines = outcome.stdout.lines().filter(|line| line.contains("p50")).count();
        demand(lines == 2, "an answer was wrong or missing")
    };
    let programs = [companion("amp"), image("echo")];
    case("a program on a CPU without Linux answers", &script, &programs, judge).saying(|outcome| {
        Ok(outcome.stdout.lines().filter(|line| line.contains("p50")).collect::<Vec<_>>().join("; "))
    })
}

#[cfg(test)]
mod tests {
    use super::super::{rejects, requires_each_line};
    use super::*;

    #[test]
    fn rejects_cpu_that_stays_offline() {
        rejects(
            command().judge,
            "meanwhile 0-1\nkept away\nsecond 2\nended 0\nperiodic: safe after 900 ticks\nfault 101\n\
             punctual: data abort\nstuck 101\npunctual: it was asked to end, and did not within 1000 ms\n\
             nothing is taken or changed\nerror: CPU 0 stays with Linux\nrefused 2\n\
             error: CPU 7 does not exist\nrefused 2\nerror: no program\nrefused 2\n\
             error: modprobe punctual_cpu\nrefused 2\nonline 0-2\n",
            &[
                ("online 0-2\n", "online 0-1\n"),
                ("online 0-2\n", "online 0-2\n[1] WARNING: x\ncomplaints\n"),
                ("meanwhile 0-1", "meanwhile 0-2"),
                ("kept away\n", ""),
                ("second 2", "second 0"),
                ("ended 0", "ended 101"),
                ("after 900", "after 0"),
                ("fault 101", "fault 0"),
                ("stuck 101", "stuck 137"),
                ("nothing is taken", "CPU 2 is taken"),
                ("refused 2", "refused 0"),
            ],
        );
    }

    #[test]
    fn rejects_program_that_outlives_its_partner() {
        requires_each_line(
            pair().judge,
            "ends 0, safe 1, ui 1\nother-ends 0, safe 1, ui 1\npanic 101, safe 1, ui 1\n\
             other-panics 101, safe 0, ui 1\nabort 1, safe 1, ui 0\nexit 7, safe 1, ui 0\n\
             hang 1, safe 1, ui 0\nother-hangs 101, safe 0, ui 1\nui: 5: the level is 0.90\n\
             control  3  500\nrung  2  0\nwatch  1  3\nshow  2  5\n\
             hang:control: the user interface is silent\nother-hangs:ui: the controller is silent\n\
             nothing is taken\nalone 1\nno program 2\nonline 0-2\n",
        );
    }

    #[test]
    fn requires_other_machine() {
        requires_each_line(
            other().judge,
            "memory of Linux is refused\npunctual_cpu: version 2, GICv2, PSCI 0x10001 by SMC, 2 MB at 0x9fe00000\n\
             ends 0, safe 1, ui 1\nother-ends 0, safe 1, ui 1\nother-panics 101, safe 0, ui 1\n\
             other-faults 101, safe 0, ui 1\nonline 0-2\n",
        );
    }

    #[test]
    fn rejects_gimbal_without_remote_control() {
        requires_each_line(
            gimbal().judge,
            "ui: 900 periods recorded\nui: pan at 0.502 rad of 0.500, tilt at -0.210 rad of -0.200\n\
             control: 9000 exchanges, of which failed: 0; off: true\ncurrent  4\nsample  3\nposition  2\n\
             setpoint  2\nrecording  1\nended 0, 900 lines\nonline 0-2\n",
        );
    }

    #[test]
    fn demands_every_cycle_and_every_answer() {
        rejects(cycles().judge, "250 cycles\nstart: p50 1\nonline 0-2\n", &[("250 cycles\n", "")]);
        requires_each_line(exchange().judge, "two: p50 1\nLinux: p50 1\nonline 0-2\n");
    }
}

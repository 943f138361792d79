//! Devices driven from user space: their registers are mapped into the process, and their
//! interrupts release a task.

use std::path::Path;

use xtask_support::Result;
use xtask_support::cargo::Purpose;
use xtask_support::process::{End, Outcome};

use super::devices::STRICT;
use super::{Built, Case, PROGRAMS, Setup, demand, find};
use crate::driver::stage::in_guest;
use crate::kernels::modules;

/// The machines whose kernels are Debian's, which have the drivers.
const ON: &[Setup] = &[Setup::COUNTED, Setup::TWO];

/// The feature that a board lacks.
const NO_DEVICES: &str = "the devices of QEMU's PC";

/// The number of interrupts.
const COUNT: u32 = 200;

/// The cases of this file.
pub(super) fn cases(built: Built<'_>) -> Result<Vec<Case>> {
    let program = |name: &str| find(built, Purpose::Example, PROGRAMS, name);
    let parallel = program("parallel_port")?;
    let module = modules::in_guest("punctual_parallel");
    Ok(vec![
        pci(program("pci_interrupts")?),
        parallel_port(
            "uio",
            &format!("{} && insmod {module}", drivers(&["uio"])),
            "rmmod punctual_parallel uio",
            parallel,
        ),
        parallel_port(
            "kernel",
            // With its address given, the driver probes no others.
            &format!(
                "{} && insmod /lab/modules/parport_pc.ko io=0x378 irq=7 && {}",
                drivers(&["parport"]),
                drivers(&["ppdev"])
            ),
            "rmmod ppdev parport_pc parport",
            parallel,
        ),
        refusals(program("pci_interrupts")?, parallel),
    ])
}

/// Loads kernel modules.
fn drivers(names: &[&str]) -> String {
    let loads: Vec<_> = names.iter().map(|name| format!("insmod /lab/modules/{name}.ko")).collect();
    loads.join(" && ")
}

/// Binds the generic UIO driver to the function in `$function`.
const BIND: &str = "function=$(grep -l 0x11e8 /sys/bus/pci/devices/*/device); function=${function%/device}
        echo uio_pci_generic >$function/driver_override && echo ${function##*/} >/sys/bus/pci/drivers_probe || exit 9";

/// Registers of a PCI device in the process, and its line interrupt.
fn pci(program: &Path) -> Case {
    let script = format!(
        "{} || exit 9
        {BIND}
        {STRICT} {} {COUNT} 2>said
        status=$?
        [ $status = 0 ] || cat said >&2
        echo ${{function##*/}} >/sys/bus/pci/drivers/uio_pci_generic/unbind && echo >$function/driver_override
        rmmod uio_pci_generic uio
        exit $status",
        drivers(&["uio", "uio_pci_generic"]),
        in_guest(program)
    );
    let judge = |outcome: &Outcome| {
        demand(outcome.stdout.starts_with("the device inverts: 0xf0f0edcb\n"), "the registers are others")?;
        answered(outcome, "interrupts")
    };
    Case::new("PCI interrupt releases a task", ON, script, Some(program), judge)
        .lacking(NO_DEVICES)
        .saying(|outcome| latency(outcome).map(str::to_owned))
}

/// A sent byte, and the interrupt that follows.
fn parallel_port(form: &str, load: &str, unload: &str, program: &Path) -> Case {
    let script = format!(
        "{load} || exit 9
        {STRICT} {} {form} {COUNT} 2>said
        status=$?
        [ $status = 0 ] || cat said >&2
        {unload}
        exit $status",
        in_guest(program)
    );
    let judge = |outcome: &Outcome| answered(outcome, "bytes");
    Case::new(&format!("parallel port releases a task ({form})"), ON, script, Some(program), judge)
        .lacking(NO_DEVICES)
        .saying(|outcome| latency(outcome).map(str::to_owned))
}

/// Without a driver, and with one that already uses the ports, programs report this and the remedy.
fn refusals(pci: &Path, parallel: &Path) -> Case {
    let script = format!(
        "{pci} 1; echo $?
        {parallel} uio 1; echo $?
        {} || exit 9
        {parallel} uio 1; echo $?
        insmod /lab/modules/parport.ko && insmod /lab/modules/parport_pc.ko io=0x378 irq=7 || exit 9
        insmod {} 2>/dev/null && echo both
        rmmod parport_pc parport uio",
        drivers(&["uio"]),
        modules::in_guest("punctual_parallel"),
        pci = in_guest(pci),
        parallel = in_guest(parallel),
    );
    let judge = |outcome: &Outcome| {
        demand(outcome.end == End::Exited(0), "modules cannot be loaded")?;
        demand(outcome.stdout.ends_with("\n1\n1\n1\n"), "something was not refused")?;
        let named = |what: &str| outcome.stderr.matches(what).count();
        demand(named("driver_override") == 1, "the error does not explain how to bind a driver")?;
        demand(named("called `punctual-parallel`") == 2, "the device is not named")
    };
    Case::new("devices that are not there are named", &[Setup::COUNTED], script, Some(pci), judge)
        .with(parallel)
        .lacking(NO_DEVICES)
}

/// Checks that all `what` released a job.
fn answered(outcome: &Outcome, what: &str) -> Result {
    demand(outcome.end == End::Exited(0), "the app failed")?;
    latency(outcome)?;
    let all = format!("\nshut down after {COUNT} {what}\n");
    demand(outcome.stdout.ends_with(&all), "interrupts are missing")
}

fn latency(outcome: &Outcome) -> Result<&str> {
    let printed = outcome.stdout.lines().find_map(|line| line.strip_prefix("latency: "));
    printed.ok_or_else(|| "it said no latency".into())
}

#[cfg(test)]
mod tests {
    use super::super::{outcome, rejects};
    use super::*;

    #[test]
    fn rejects_missing_interrupts_and_other_registers() {
        let latency = "latency: 1 to 3 ns, median 2 ns\n";
        rejects(
            pci(Path::new("/x")).judge,
            &format!("the device inverts: 0xf0f0edcb\n{latency}shut down after 200 interrupts\n"),
            &[("200", "199"), ("0xf0f0edcb", "0x0f0f1234"), (latency, "")],
        );
        let judge = parallel_port("uio", "", "", Path::new("/x")).judge;
        rejects(judge, &format!("{latency}shut down after 200 bytes\n"), &[(latency, "")]);
    }

    #[test]
    fn rejects_refusal_without_reason() {
        let judge = refusals(Path::new("/x"), Path::new("/y")).judge;
        let why = "driver_override\ncalled `punctual-parallel`\ncalled `punctual-parallel`\n";
        let printed = |changed: &Outcome| judge(&outcome(&changed.stdout, why));
        rejects(printed, "x\n1\n1\n1\n", &[("1\n1\n1\n", "1\n1\n1\nboth\n")]);
        assert!(judge(&outcome("x\n1\n1\n1\n", "")).is_err());
    }
}

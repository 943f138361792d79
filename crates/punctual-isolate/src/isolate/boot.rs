//! Boot parameters that isolate CPUs: names, where to set them, and their benefits over run-time
//! settings.

use std::fmt::Write as _;

use crate::cpus::Cpus;
use crate::facts::Machine;

/// A parameter and its benefit.
struct Parameter {
    name: &'static str,
    value: String,
    gain: &'static str,
}

/// Returns the boot parameters that isolate these CPUs, as text.
#[must_use]
pub fn text(machine: &Machine, cpus: &Cpus) -> String {
    let others = machine.topology.online.without(cpus);
    let parameters = [
        Parameter {
            name: "isolcpus",
            value: format!("managed_irq,domain,{cpus}"),
            gain: "managed interrupts, such as those of NVMe disks, go to other CPUs; the kernel refuses to move them at run time",
        },
        Parameter {
            name: "nohz_full",
            value: cpus.to_string(),
            gain: "no tick while one thread runs there: 6 ticks in 3 s of computing instead of 686 in one measurement; not \
                   possible at run time",
        },
        Parameter {
            name: "rcu_nocbs",
            value: cpus.to_string(),
            gain: "RCU callbacks run on other CPUs; not possible at run time",
        },
        Parameter {
            name: "irqaffinity",
            value: others.to_string(),
            gain: "interrupts of drivers loaded later go to other CPUs; `isolate` does the same at run time",
        },
    ];
    let booted = &machine.kernel.parameters;
    let line: Vec<String> =
        parameters.iter().map(|parameter| format!("{}={}", parameter.name, parameter.value)).collect();
    let line = line.join(" ");
    let mut out = format!("To isolate {}, boot with\n\n    {line}\n\n", cpus.named());
    for parameter in &parameters {
        let now = match booted.value(parameter.name) {
            Some(value) if value == parameter.value => "; in force".to_owned(),
            Some(value) => format!("; replaces the current value `{value}`"),
            None => String::new(),
        };
        let _ = writeln!(out, "  {:<12} {}{}", parameter.name, parameter.gain, crate::doctor::clean(&now));
    }
    if machine.kernel.option("CONFIG_NO_HZ_FULL") == Some("n") {
        out += "\nThis kernel is built without CONFIG_NO_HZ_FULL: it ignores nohz_full.\n";
    }
    if booted.value("nohz") == Some("off") {
        out += "\nThe kernel was booted with nohz=off, which defeats nohz_full: remove it.\n";
    }
    let _ = write!(
        out,
        "
GRUB           append it to GRUB_CMDLINE_LINUX in /etc/default/grub, then: update-grub && reboot
systemd-boot   append it to the line `options` of the entry in /boot/efi/loader/entries/*.conf
               (or to /etc/kernel/cmdline, then: kernel-install add-all)
Raspberry Pi   append it to the one line of /boot/firmware/cmdline.txt
"
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    #[test]
    fn reports_effective_and_conflicting_parameters() {
        let tree = Tree::parse("")
            .with("/sys/devices/system/cpu/online", "0-3")
            .with("/proc/cmdline", "rcu_nocbs=3 isolcpus=2 nohz=off");
        let printed = text(&Machine::read(tree), &Cpus::from([3]));
        assert!(
            printed.contains("isolcpus=managed_irq,domain,3 nohz_full=3 rcu_nocbs=3 irqaffinity=0-2"),
            "{printed}"
        );
        assert!(printed.contains("instead; in force") || printed.contains("run time; in force"), "{printed}");
        assert!(
            printed.contains("replaces the current value `2`") && printed.contains("defeats nohz_full"),
            "{printed}"
        );
    }
}

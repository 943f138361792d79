//! A console that is slow to write to.

use super::*;

pub(super) const CHECK: Check =
    Check { name: "console", examines: "kernel messages on a serial console", run };

const CONSOLES: &str = "/proc/consoles";
/// The console's log level comes first.
const LEVELS: &str = "/proc/sys/kernel/printk";
/// Names of serial ports: of PCs, of ARM boards, and by USB.
const SERIAL: [&str; 5] = ["ttyS", "ttyAMA", "ttyUSB", "ttymxc", "ttyPS"];

fn run(scene: &Scene, report: &mut Report) {
    let Some(consoles) = report.read(scene, CONSOLES) else { return };
    let names: Vec<&str> = consoles.lines().filter_map(|line| line.split_whitespace().next()).collect();
    report.value(if names.is_empty() { "none".into() } else { names.join(", ") });
    let serial = names.into_iter().find(|name| SERIAL.iter().any(|start| name.starts_with(start)));
    let Some(serial) = serial else { return };
    let level =
        report.read(scene, LEVELS).and_then(|levels| levels.split_whitespace().next()?.parse::<u8>().ok());
    // Only emergencies, which a machine does not survive on time anyway.
    if level.is_some_and(|level| level <= 1) {
        return;
    }
    report.add(
        Finding::new(Severity::Low, format!("messages of the kernel go to the serial console {serial}"))
            .why("A CPU that prints sends each character with interrupts masked, unless the driver has a thread for it.")
            .costs(Cost::typical(8_000_000, "for a line at 115 200 baud"))
            .fix(Lasts::UntilReboot, "dmesg -n 1")
            .advise(Lasts::FromReboot, format!("boot with loglevel=1, or without console={serial}")),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_serial_console_unless_it_prints_emergencies_only() {
        let serial = (CONSOLES, "tty0 -WU (EC p ) 4:7\nttyS0 -W- (EC p a) 4:64");
        assert_eq!(found(CHECK, &[serial]), ["low"]);
        assert_eq!(found(CHECK, &[serial, (LEVELS, "1\t4\t1\t7")]), NOTHING);
        assert_eq!(found(CHECK, &[(CONSOLES, "tty0 -WU (EC p ) 4:7")]), NOTHING);
        assert_eq!(status(CHECK, &[(CONSOLES, "tty0 -WU (EC p ) 4:7")]), "good: tty0");
    }
}

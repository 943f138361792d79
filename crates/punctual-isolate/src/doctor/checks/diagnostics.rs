//! Diagnostics of the kernel: messages, tracers and checkers.

use super::*;

/// A console that is slow to write to.
pub(super) const CONSOLE: Check =
    Check { name: "console", examines: "kernel messages on a serial console", run: console };

const CONSOLES: &str = "/proc/consoles";
/// The console's log level comes first.
const LEVELS: &str = "/proc/sys/kernel/printk";
/// Names of serial ports: of PCs, of ARM boards, and by USB.
const SERIAL: [&str; 5] = ["ttyS", "ttyAMA", "ttyUSB", "ttymxc", "ttyPS"];

fn console(scene: &Scene, report: &mut Report) {
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

/// Tracers and checkers of the kernel that were left on.
pub(super) const DEBUGGING: Check =
    Check { name: "debugging", examines: "tracers, lockdep, KASAN and KCSAN left on", run: debugging };

/// Both places of the file system for tracing.
const TRACING: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Checkers compiled into the kernel.
const CHECKERS: [(&str, &str); 3] =
    [("CONFIG_PROVE_LOCKING", "lockdep"), ("CONFIG_KASAN", "KASAN"), ("CONFIG_KCSAN", "KCSAN")];

fn debugging(scene: &Scene, report: &mut Report) {
    let (tree, kernel) = (&scene.machine.tree, &scene.machine.kernel);
    let mut active = Vec::new();
    let tracing =
        TRACING.iter().find_map(|place| Some((*place, tree.text(&format!("{place}/current_tracer"))?)));
    if let Some((place, tracer)) = &tracing {
        report.value(format!("tracer {tracer}"));
        let file = |name: &str| format!("{place}/{name}");
        let records = tree.text(&file("tracing_on")).is_none_or(|on| on == "1");
        if tracer != "nop" {
            active.push(tracer.clone());
            report.add(
                Finding::new(Severity::Medium, format!("the tracer `{tracer}` is on"))
                    .why("It records at every call or event, on every CPU.")
                    .costs(Cost::typical(1_000, "for each recorded event"))
                    .write(&file("current_tracer"), "nop"),
            );
        }
        let enabled = tree.text(&file("events/enable"));
        if records && enabled.is_some_and(|enabled| enabled == "1" || enabled == "X") {
            active.push("events".into());
            report.add(
                Finding::new(Severity::Low, "events are traced in the top-level instance")
                    .why("The kernel records them for as long as they are enabled, although nothing may read them.")
                    .costs(Cost::typical(500, "for each event"))
                    .write(&file("events/enable"), "0"),
            );
        }
    }
    let built = CHECKERS.into_iter().filter(|(option, _)| kernel.option(option) == Some("y"));
    for (option, checker) in built {
        active.push(checker.into());
        report.add(
            Finding::new(Severity::Medium, format!("the kernel is built with {checker} ({option})"))
                .why("It checks every lock or memory access of the kernel, which slows all of its paths.")
                .costs(Cost::typical(100_000, "for a long system call"))
                .advise(Lasts::FromReboot, "boot a kernel without it, such as that of a distribution"),
        );
    }
    if !active.is_empty() {
        report.value(active.join(", "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_serial_console_unless_it_prints_emergencies_only() {
        let serial = (CONSOLES, "tty0 -WU (EC p ) 4:7\nttyS0 -W- (EC p a) 4:64");
        assert_eq!(found(CONSOLE, &[serial]), ["low"]);
        assert_eq!(found(CONSOLE, &[serial, (LEVELS, "1\t4\t1\t7")]), NOTHING);
        assert_eq!(found(CONSOLE, &[(CONSOLES, "tty0 -WU (EC p ) 4:7")]), NOTHING);
        assert_eq!(status(CONSOLE, &[(CONSOLES, "tty0 -WU (EC p ) 4:7")]), "good: tty0");
    }

    #[test]
    fn finds_tracers_and_events_that_were_left_on() {
        let [tracer, events, on] = ["current_tracer", "events/enable", "tracing_on"]
            .map(|name| format!("/sys/kernel/tracing/{name}"));
        let [tracer, events, on] = [tracer.as_str(), events.as_str(), on.as_str()];
        assert_eq!(fixed(DEBUGGING, &[(tracer, "function")]), [(tracer, "nop")]);
        assert_eq!(found(DEBUGGING, &[(tracer, "nop"), (events, "0")]), NOTHING);
        assert_eq!(fixed(DEBUGGING, &[(tracer, "nop"), (events, "X")]), [(events, "0")]);
        assert_eq!(found(DEBUGGING, &[(tracer, "nop"), (events, "X"), (on, "0")]), NOTHING);
        assert_eq!(status(DEBUGGING, &[(tracer, "nop")]), "good: tracer nop");
        assert_eq!(status(DEBUGGING, &[]), "unknown");
    }

    #[test]
    fn finds_checkers_compiled_into_the_kernel() {
        let config = [
            ("/proc/sys/kernel/osrelease", "6.1"),
            ("/boot/config-6.1", "CONFIG_KASAN=y\nCONFIG_PROVE_LOCKING=y"),
        ];
        assert_eq!(found(DEBUGGING, &config), ["medium", "medium"]);
        assert!(text(DEBUGGING, &config).contains("the kernel is built with lockdep (CONFIG_PROVE_LOCKING)"));
    }
}

//! Priorities of threads that serve devices, relative to the app's. The classic trap: an SPI
//! driver's thread without a real-time priority cost a thesis weeks of lost samples.

use super::*;

pub(super) const CHECK: Check = Check {
    name: "interrupt-threads",
    examines: "threads of device interrupts relative to the app's priorities",
    run,
};

/// The default priority of interrupt threads.
const USUAL: u8 = 50;

fn run(scene: &Scene, report: &mut Report) {
    let serving = |thread: &&crate::facts::Thread| thread.name.starts_with("irq/") || is_driver(&thread.name);
    let count = scene.machine.threads.iter().filter(|thread| thread.is_kernel).filter(serving).count();
    report.value(format_counted(count as u64, "thread"));
    for thread in scene.machine.threads.iter().filter(|thread| thread.is_kernel) {
        let name = &thread.name;
        let is_interrupt = name.starts_with("irq/");
        if !is_interrupt && !is_driver(name) {
            continue;
        }
        let is_used = serves(scene, name);
        let priority = thread.policy.priority();
        let setting = Setting::Policy { thread: thread.id, started: thread.started };
        let raise = |finding: Finding, to: u8| {
            let change = Change { setting: setting.clone(), new: format!("fifo {to}") };
            finding.set(format!("chrt -f -p {to} {}", thread.id), vec![change]).advise(
                Lasts::Always,
                "a systemd unit that does this once the device exists: docs/book/src/guides/setup.md",
            )
        };
        let below = scene.band.start().saturating_sub(1).clamp(1, USUAL);
        match priority {
            None if thread.policy == Policy::Fair => report.add(raise(
                Finding::new(
                    if is_used { Severity::High } else { Severity::Medium },
                    format!("the thread {name} ({}), which serves a device, has no real-time priority", thread.id),
                )
                .why(match is_used {
                    true => "The app uses this device: its tasks wait until the scheduler runs this thread among all ordinary ones.",
                    false => "A thread that waits for this device waits until the scheduler runs this thread among all ordinary ones.",
                })
                .costs(Cost::typical(4_000_000, "under load")),
                if is_used { aside(scene) } else { below },
            )),
            Some(priority) if is_used && priority <= *scene.band.end() && scene.app.is_some() => {
                let place = if priority < *scene.band.start() { "below" } else { "among" };
                report.add(raise(
                    Finding::new(
                        Severity::Medium,
                        format!(
                            "the thread {name} ({}) runs at {priority}, {place} the app's priorities {} to {}",
                            thread.id,
                            scene.band.start(),
                            scene.band.end()
                        ),
                    )
                    .why("Tasks that wait for this device also wait for tasks of lower levels, since those preempt its thread."),
                    aside(scene),
                ));
            }
            Some(priority) if thread.may_run_on(&scene.cpus) && scene.band.contains(&priority) && !is_used => {
                report.add(raise(
                    Finding::new(
                        Severity::Medium,
                        format!("the thread {name} ({}) runs at {priority} on the app's CPUs, among its priorities", thread.id),
                    )
                    .why("It preempts some levels of the app and not others, which the app's analysis does not cover."),
                    below,
                ));
            }
            _ => {}
        }
    }
}

/// Above the app, so that its highest task gets its input.
fn aside(scene: &Scene) -> u8 {
    scene.band.end().saturating_add(1).min(98)
}

/// Returns `true` for threads of drivers that deliver a device's data.
fn is_driver(name: &str) -> bool {
    let numbered = |prefix: &str| {
        name.strip_prefix(prefix)
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
    };
    ["spi", "i2c-", "can"].iter().any(|prefix| numbered(prefix))
}

/// Returns `true` if the app has a device open that this thread serves: `spi0` serves
/// `/dev/spidev0.1`.
fn serves(scene: &Scene, thread: &str) -> bool {
    let devices = scene.app.iter().flat_map(|app| &app.devices);
    let mut names = devices.filter_map(|path| path.rsplit('/').next());
    names.any(|device| match device.strip_prefix("spidev").and_then(|rest| rest.split_once('.')) {
        Some((bus, _)) => thread == format!("spi{bus}"),
        // irq/57-gpiochip0, irq/33-uio0
        None => {
            thread == device
                || thread.strip_prefix("irq/").is_some_and(|rest| rest.split('-').any(|part| part == device))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(name: &str, priority: u8, policy: u8) -> String {
        format!(
            "77 ({name}) S 2 0 0 0 -1 2129984 {} 33 {} 3 {priority} {policy} 0",
            "0 ".repeat(12),
            "0 ".repeat(16)
        )
    }

    fn app(devices: &[&str]) -> App {
        let model = r#"{"schema":"punctual-model/1","app":"a","partitions":[],"tasks":[{"name":"t","kind":"bound","level":4}]}"#;
        App {
            devices: devices.iter().map(|&device| device.to_owned()).collect(),
            ..App::of_model(model).unwrap()
        }
    }

    const STAT: &str = "/proc/77/task/77/stat";

    #[test]
    fn names_spi_thread_and_command() {
        let spi = stat("spi0", 0, 0);
        let printed = text(CHECK, &[(STAT, &spi)]);
        assert!(
            printed.contains("the thread spi0 (77), which serves a device, has no real-time priority"),
            "{printed}"
        );
        assert!(printed.contains("chrt -f -p 50 77"), "{printed}");
        assert_eq!(found(CHECK, &[(STAT, &spi)]), ["medium"]);
        let used = report_of(CHECK, &[(STAT, &spi)], Some(app(&["/dev/spidev0.1"])));
        assert_eq!(used.findings[0].severity, Severity::High);
        assert!(used.findings[0].fixes[0].command.starts_with("chrt -f -p 55 77"), "above the app");
        assert_eq!(found(CHECK, &[(STAT, &stat("spi0", 50, 1))]), NOTHING);
        assert_eq!(found(CHECK, &[(STAT, &stat("spider", 0, 0))]), NOTHING);
    }

    #[test]
    fn finds_interrupt_threads_among_app_priorities() {
        let among = stat("irq/57-gpiochip0", 53, 1);
        let status = ("/proc/77/task/77/status", "Cpus_allowed_list: 3");
        assert_eq!(found(CHECK, &[(STAT, &among), status]), ["medium"]);
        let used =
            report_of(CHECK, &[(STAT, &stat("irq/57-gpiochip0", 50, 1))], Some(app(&["/dev/gpiochip0"])));
        assert!(used.findings[0].found.contains("runs at 50, below the app's priorities 51 to 54"));
        assert_eq!(found(CHECK, &[(STAT, &stat("irq/57-gpiochip0", 50, 1)), status]), NOTHING);
    }
}

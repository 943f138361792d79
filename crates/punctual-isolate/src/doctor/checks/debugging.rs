//! Tracers and checkers of the kernel that were left on.

use super::*;

pub(super) const CHECK: Check =
    Check { name: "debugging", examines: "tracers, lockdep, KASAN and KCSAN left on", run };

/// Both places of the file system for tracing.
const TRACING: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Checkers compiled into the kernel.
const CHECKERS: [(&str, &str); 3] =
    [("CONFIG_PROVE_LOCKING", "lockdep"), ("CONFIG_KASAN", "KASAN"), ("CONFIG_KCSAN", "KCSAN")];

fn run(scene: &Scene, report: &mut Report) {
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
    fn finds_tracers_and_events_that_were_left_on() {
        let [tracer, events, on] = ["current_tracer", "events/enable", "tracing_on"]
            .map(|name| format!("/sys/kernel/tracing/{name}"));
        let [tracer, events, on] = [tracer.as_str(), events.as_str(), on.as_str()];
        assert_eq!(fixed(CHECK, &[(tracer, "function")]), [(tracer, "nop")]);
        assert_eq!(found(CHECK, &[(tracer, "nop"), (events, "0")]), NOTHING);
        assert_eq!(fixed(CHECK, &[(tracer, "nop"), (events, "X")]), [(events, "0")]);
        assert_eq!(found(CHECK, &[(tracer, "nop"), (events, "X"), (on, "0")]), NOTHING);
        assert_eq!(status(CHECK, &[(tracer, "nop")]), "good: tracer nop");
        assert_eq!(status(CHECK, &[]), "unknown");
    }

    #[test]
    fn finds_checkers_compiled_into_the_kernel() {
        let config = [
            ("/proc/sys/kernel/osrelease", "6.1"),
            ("/boot/config-6.1", "CONFIG_KASAN=y\nCONFIG_PROVE_LOCKING=y"),
        ];
        assert_eq!(found(CHECK, &config), ["medium", "medium"]);
        assert!(text(CHECK, &config).contains("the kernel is built with lockdep (CONFIG_PROVE_LOCKING)"));
    }
}

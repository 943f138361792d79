//! Apps under load: they stay correct, and a killed app leaves nothing behind.

use std::path::Path;

use xtask_support::cargo::Purpose;
use xtask_support::process::{End, Outcome};
use xtask_support::{Result, golden};

use super::{Built, Case, Setup, demand, find};
use crate::driver::stage::in_guest;

/// The cases of this file.
pub(super) fn cases(built: Built<'_>) -> Result<Vec<Case>> {
    let stress = find(built, Purpose::Test, golden::PACKAGE, "stress")?;
    Ok(vec![
        stressed(&[Setup::ONE], "sole:: global::", 4, stress),
        stressed(&[Setup::TWO, Setup::FOUR], "", 8, stress),
        killed(stress),
    ])
}

/// The stress test of the executor kinds that the words select, which has `count` tests of several
/// seconds each.
fn stressed(on: &'static [Setup], kinds: &str, count: u32, program: &Path) -> Case {
    let script =
        format!("PUNCTUAL_STRESS_SECONDS=4 exec {} --test-threads 1 --nocapture {kinds}", in_guest(program));
    let judge = move |outcome: &Outcome| {
        demand(outcome.end == End::Exited(0), "the stress test failed")?;
        demand(!outcome.stdout.contains("SKIPPED"), "a kind was skipped")?;
        demand(outcome.stdout.contains(&format!("{count} passed")), "kinds are missing")
    };
    Case::new("stress", on, script, Some(program), judge)
}

/// An app under load is killed, and leaves neither threads, nor memory, nor changed settings.
fn killed(program: &Path) -> Case {
    let run = format!(
        "PUNCTUAL_STRESS_KIND=sole PUNCTUAL_STRESS_SECONDS=40 {} --ignored --exact program",
        in_guest(program)
    );
    let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    // Dropping caches also flushes the per-CPU batches that delay the counting of locked pages.
    // Pages locked by the previous case may still be counted at first, so a lower count than before
    // is correct as well.
    let script = format!(
        "locked() {{
            echo 3 >/proc/sys/vm/drop_caches
            awk '/^Mlocked:/ {{ print $2 }}' /proc/meminfo
        }}
        state() {{
            ls -R /dev/shm
            grep -H '' /proc/sys/kernel/sched_* /proc/irq/*/smp_affinity /proc/irq/default_smp_affinity
            grep -h -F '{short}' /proc/[0-9]*/comm 2>/dev/null
        }}
        state >before
        locked_before=$(locked)
        ({run}) >/tmp/load 2>&1 &
        sleep 3
        pid=$(pidof {name}) || {{ cat /tmp/load; echo 'it did not run'; exit 1; }}
        echo threads $(ls /proc/$pid/task | wc -l)
        kill -9 $pid
        # A host with much to do takes its time to end it.
        for turn in $(seq 20); do
            sleep 0.5
            locked_after=$(locked)
            pidof {name} >/dev/null || [ $locked_after -gt $locked_before ] || break
        done
        state >after
        echo locked $locked_before, then $locked_after
        diff before after && [ $locked_after -le $locked_before ] && echo clean",
        short = &name[..name.len().min(15)],
    );
    let judge = |outcome: &Outcome| {
        demand(outcome.stdout.ends_with("clean\n"), "something remains")?;
        let threads = outcome.stdout.lines().find_map(|line| line.strip_prefix("threads ")?.parse().ok());
        demand(threads.is_some_and(|threads: u32| threads > 3), "the kill came before any thread existed")
    };
    Case::new("kill -9 leaves nothing behind", &[Setup::TWO], script, Some(program), judge)
}

#[cfg(test)]
mod tests {
    use super::super::rejects;
    use super::*;

    #[test]
    fn rejects_shared_memory_of_killed_app() {
        let judge = killed(Path::new("/x")).judge;
        rejects(judge, "threads 12\nclean\n", &[("12", "1"), ("clean", "locked 0, then 9")]);
    }
}

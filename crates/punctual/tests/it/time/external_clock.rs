//! Grids that follow an external clock: lock, steps, hold-over, and limits of the distance.

use std::sync::{Arc, Mutex};

use super::*;
use punctual::ExternalClock;
use punctual::model::Kind;
use punctual::report::{ClockReport, ClockState};

static CLOCK: ExternalClock = ExternalClock::new();

/// External time at an instant, in ns; `None` if there is no reading.
type Scenario = fn(u64) -> Option<u64>;

const MS: u64 = 1_000_000;

#[punctual::app(main = false)]
mod app {
    use std::sync::{Arc, Mutex};

    use super::{CLOCK, Scenario};
    use punctual::ClockSource;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        source: ClockSource,
        scenario: Scenario,
        releases: Arc<Mutex<Vec<u64>>>,
    }

    #[init]
    fn init(_: init::Context, scenario: Scenario, releases: Arc<Mutex<Vec<u64>>>) -> (Shared, Local) {
        let source = CLOCK.source().expect("the previous run has dropped its source");
        (Shared {}, Local { source, scenario, releases })
    }

    #[task(priority = 2, period = 1.millis(), clock = super::CLOCK, offset = 100.micros(), local = [releases])]
    fn control(cx: control::Context) {
        cx.local.releases.lock().expect("only this task locks it").push(cx.released.as_ticks());
    }

    #[task(priority = 1, period = 10.millis(), local = [source, scenario])]
    fn read(cx: read::Context) {
        let now = punctual::now();
        if let Some(external) = (cx.local.scenario)(now.as_ticks()) {
            cx.local.source.record(now, external).expect("time advances");
        }
    }
}

/// Runs the scenario for this many ms; returns the report on the clock, and the releases.
fn run(scenario: Scenario, ms: u64) -> (ClockReport, Vec<u64>) {
    let releases = Arc::new(Mutex::new(Vec::with_capacity(ms as usize + 100)));
    let report = app::run(until_ms(ms), scenario, Arc::clone(&releases)).unwrap();
    let releases = std::mem::take(&mut *releases.lock().unwrap());
    let clock = report.task("control").and_then(|task| task.clock).unwrap();
    assert_eq!(clock.clock, "CLOCK");
    let distances = releases.windows(2).map(|pair| pair[1] - pair[0]);
    distances.for_each(|distance| assert!((999_000..=1_001_000).contains(&distance), "{distance}"));
    (clock, releases)
}

/// Returns the time from a release to the nearest millisecond of the external clock, plus the
/// offset, in ns.
fn phase_error(exact: fn(u64) -> u64, release: u64) -> u64 {
    let after = (exact(release) - 100_000) % MS;
    after.min(MS - after)
}

/// An external clock that runs 50 ppm fast.
fn fast(at: u64) -> u64 {
    7 * MS / 3 + at + at / 20_000
}

/// Noise of ±1 µs.
fn noisy(at: u64) -> u64 {
    let random = at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    fast(at) + random % 2_001 - 1_000
}

#[test]
fn locks_to_fast_noisy_clock() {
    let (clock, releases) = run(|at| Some(noisy(at)), 10_000);
    assert_eq!((clock.state, clock.steps, clock.hold_overs), (ClockState::Locked, 0, 0));
    let drift = clock.drift_ppb.unwrap();
    assert!((46_000..54_000).contains(&drift), "{drift}");
    let max = clock.phase_max_ns.unwrap();
    assert!((500..2_500).contains(&max) && clock.phase_ns.unwrap().unsigned_abs() <= max, "{clock:?}");
    for &release in releases.iter().filter(|&&release| release > 1_000 * MS) {
        assert!(phase_error(fast, release) < 900, "{release}");
    }
}

#[test]
fn step_is_counted_and_grid_moves_slowly() {
    fn stepping(at: u64) -> u64 {
        fast(at) + if at < 3_000 * MS { 0 } else { 5_000_300_400 }
    }
    let (clock, releases) = run(|at| Some(stepping(at)), 6_000);
    assert_eq!((clock.state, clock.steps), (ClockState::Locked, 1));
    assert!(clock.phase_max_ns.unwrap() < 100, "{clock:?}");
    let last = *releases.last().unwrap();
    assert!(phase_error(stepping, last) <= 2, "{clock:?}");
    let during = releases.iter().find(|&&release| release > 3_100 * MS).unwrap();
    assert!(phase_error(stepping, *during) > 100_000);
}

#[test]
fn silence_is_hold_over_with_unknown_phase() {
    let (clock, releases) = run(|at| (at < 3_000 * MS).then(|| fast(at)), 10_000);
    assert_eq!((clock.state, clock.hold_overs, clock.phase_ns), (ClockState::HoldOver, 1, None));
    assert!((49_990..50_010).contains(&clock.drift_ppb.unwrap()), "{clock:?}");
    assert!(clock.phase_max_ns.is_some(), "it was locked before");
    assert!(phase_error(fast, *releases.last().unwrap()) < 100, "7 s at the last rate");
}

#[test]
fn reading_ends_hold_over() {
    let silent = |at| (!(2_000 * MS..=8_000 * MS).contains(&at)).then(|| fast(at));
    let (clock, releases) = run(silent, 9_000);
    assert_eq!((clock.state, clock.hold_overs, clock.steps), (ClockState::Locked, 1, 0));
    assert!(phase_error(fast, *releases.last().unwrap()) <= 2);
}

#[test]
fn grid_without_reading_runs_on_machine_clock() {
    let (clock, releases) = run(|_| None, 100);
    assert_eq!((clock.state, clock.drift_ppb), (ClockState::Never, None));
    assert_eq!((clock.phase_ns, clock.phase_max_ns), (None, None));
    assert!(releases.iter().enumerate().all(|(n, &release)| release == 100_000 + n as u64 * MS));
}

#[test]
fn restarted_run_locks_to_other_clock() {
    fn slow(at: u64) -> u64 {
        900 * MS + 300_000 + at - at / 10_000
    }
    let first = run(|at| Some(fast(at)), 2_000);
    let (clock, releases) = run(|at| Some(slow(at)), 2_000);
    assert_eq!((clock.state, clock.steps), (ClockState::Locked, 0));
    assert!((-100_010..-99_990).contains(&clock.drift_ppb.unwrap()), "{clock:?}");
    assert!(phase_error(slow, *releases.last().unwrap()) <= 2);
    assert_eq!(run(|at| Some(fast(at)), 2_000), first, "virtual time repeats");
}

#[test]
fn report_shows_state_drift_and_phase() {
    let line = |scenario: Scenario, ms| {
        let report = app::run(until_ms(ms), scenario, Arc::default()).unwrap().to_string();
        report.lines().find(|line| line.starts_with("control: ")).map(str::to_owned).unwrap()
    };
    let locked = line(|at| Some(at + 100_000), 1_000);
    assert_eq!(
        locked,
        "control: locked to CLOCK; drift +0 ppb; phase error 0 ns, at most 0 ns while locked; 0 steps, 0 hold-overs"
    );
    let silent = line(|at| (at == 0).then_some(0), 4_000);
    assert_eq!(
        silent,
        "control: in hold-over, because readings of CLOCK are missing; drift +0 ppb; phase error unknown; 0 steps, 1 hold-over"
    );
    let never = line(|_| None, 10);
    assert_eq!(never, "control: CLOCK had no usable reading, so the grid ran on the machine's clock");
}

#[test]
fn model_has_shortest_distance_as_deadline_and_names_clock() {
    let control = app::MODEL.task("control").unwrap();
    assert_eq!((control.kind, control.clock), (Kind::Periodic, Some("CLOCK")));
    assert_eq!(control.period, Some(Duration::from_millis(1)));
    assert_eq!(control.deadline, Some(Duration::from_micros(999)));
    assert_eq!(app::MODEL.task("read").unwrap().clock, None);
}

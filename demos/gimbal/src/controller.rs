//! The controller: the gimbal as a Punctual app.
//!
//! | task | level | released | does |
//! |---|---|---|---|
//! | `current` | 4 | by `sample` or `position` | current loops of both axes, 10 kHz |
//! | `sample` | 3 | every 100 µs | exchanges voltages for angles and currents over SPI |
//! | `position` | 2 | by every tenth `sample` | position loops, 1 kHz, with the gains as they are tuned, then the current loops |
//! | `setpoint` | 1 | every 1 ms | looks up the setpoints of the coming millisecond, or takes the newest of the topic |
//! | `steer` | 1 | from the standard input | sets the setpoints by hand |
//!
//! The current loops are above the sampling, so spawning them is a function call: from one period to the
//! next the kernel is entered only to sleep. When the position loops have their turn, the current loops are
//! chained after them rather than spawned by `sample`, so that they work with the new current setpoints.

use std::sync::mpsc::Sender;

use punctual::{Config, Duration, Report, StartError};

use crate::axes::Axes;
use crate::bus::Bus;
use crate::client::{Gimbal, LinkCounters};
use crate::control::POSITION_PERIOD_NS;
use crate::log::Recorder;
use crate::setpoints::Timeline;
use crate::topics::{Carried, LinkError, Links};

/// Exchanges in a row that may fail before the controller gives up: 10 ms without control, or longer if the bus waits for each.
const MAX_FAILURES: u32 = 100;

/// The most samples that are kept of a run.
const MAX_SAMPLES: u64 = 600_000;

/// What a run leaves behind.
#[derive(Debug)]
pub struct Record {
    /// Angles and setpoints over time.
    pub recorder: Recorder,
    /// What went over the bus.
    pub link: LinkCounters,
    /// Whether the bus failed for so long that the controller gave up.
    pub gave_up: bool,
    /// What has become of the topics, if they were to go somewhere or to come.
    pub topics: Option<Result<Carried, LinkError>>,
}

/// What an app run and the record of the gimbal's motion came to.
#[derive(Debug)]
pub struct Outcome {
    /// The executor's report.
    pub report: Report,
    /// The motion, if the app got as far as moving.
    pub record: Option<Record>,
}

/// Where setpoints come from.
#[derive(Debug, Clone)]
pub enum Setpoints {
    /// Known beforehand.
    Timeline(Timeline),
    /// From [`steer`], called by this function on an ordinary thread that is started with the app.
    ByHand(fn()),
    /// From the topic `/setpoint`.
    Topic,
}

/// Runs the controller of `gimbal` for `seconds`. Its topics go by `links`, if there are any.
///
/// # Errors
/// If the app cannot start.
pub fn run(
    config: Config,
    gimbal: Gimbal<Bus>,
    seconds: f64,
    setpoints: Setpoints,
    links: Option<Links>,
) -> Result<Outcome, StartError> {
    let (sender, records) = std::sync::mpsc::channel();
    let config = config.until(Duration::from_nanos((seconds * 1e9) as u64));
    let periods = (seconds * 1e9) as u64 / POSITION_PERIOD_NS + 2;
    let every = periods.div_ceil(MAX_SAMPLES);
    let recording = Recording { recorder: Recorder::with_capacity((periods / every + 1) as usize), every };
    let report = app::run(config, gimbal, setpoints, recording, links, sender)?;
    Ok(Outcome { report, record: records.try_recv().ok() })
}

/// Sets the setpoints by hand; at `time_s` of the run if given. Gives `false` if the app cannot take it.
///
/// For ordinary threads: it waits until the gimbal has started to move.
pub fn steer(time_s: Option<f64>, angles_rad: Axes<f64>) -> bool {
    app::steer_from_outside(time_s, angles_rad)
}

/// A recorder that keeps every nth position period.
#[derive(Debug)]
pub struct Recording {
    recorder: Recorder,
    every: u64,
}

#[punctual::app(main = false, profile)]
mod app {
    use std::sync::atomic::{AtomicU64, Ordering};

    use punctual::prelude::*;
    use punctual::{Duration, Instant};
    use punctual_bridge::TunableReader;

    use super::{Bus, LinkError, Links, MAX_FAILURES, Record, Recording, Sender, Setpoints};
    use crate::axes::Axes;
    use crate::client::Gimbal;
    use crate::control::{CurrentController, POSITION_PERIOD_NS, PositionController};
    use crate::log::Sample;
    use crate::plant::{GIMBAL, SUPPLY_V};
    use crate::setpoints::Timeline;
    use crate::topics::{Topics, Wanted};
    use crate::tuning::{self, Factors};

    /// Position loops run once in so many samples.
    const SAMPLES_PER_POSITION: u64 = 10;

    /// When the first sample was released (ns), for those outside who speak in time of the run.
    static START: AtomicU64 = AtomicU64::new(0);

    #[shared]
    struct Shared {
        /// Written by `current`, sent by the next `sample`.
        voltages_v: Axes<f64>,
        /// Written by `position`, followed by `current`.
        current_setpoints_a: Axes<f64>,
        /// Written by `setpoint` or `steer`, followed by `position`.
        setpoints_rad: Axes<f64>,
    }

    #[local]
    struct Local {
        gimbal: Gimbal<Bus>,
        recording: Recording,
        gave_up: bool,
        position_loops: Axes<PositionController>,
        current_loops: Axes<CurrentController>,
        timeline: Timeline,
        records: Sender<Record>,
        topics: Option<Result<Topics, LinkError>>,
        wanted: Option<Wanted>,
        factors: Option<TunableReader<Factors>>,
    }

    #[init]
    fn init(
        _: init::Context,
        gimbal: Gimbal<Bus>,
        setpoints: Setpoints,
        recording: Recording,
        links: Option<Links>,
        records: Sender<Record>,
    ) -> (Shared, Local) {
        START.store(0, Ordering::Relaxed);
        let wanted = matches!(setpoints, Setpoints::Topic).then(Wanted::new);
        let timeline = match setpoints {
            Setpoints::Timeline(timeline) => timeline,
            Setpoints::ByHand(read) => {
                punctual::background::spawn("setpoints", read).expect("a thread can be started");
                Timeline::new()
            }
            Setpoints::Topic => Timeline::new(),
        };
        let position_loops = Axes::<PositionController>::for_axes(GIMBAL);
        let current_loops = Axes::<CurrentController>::for_axes(GIMBAL, SUPPLY_V);
        let shared = Shared {
            voltages_v: Axes::both(0.0),
            current_setpoints_a: Axes::both(0.0),
            setpoints_rad: timeline.at(0),
        };
        let gave_up = false;
        // A run that cannot be told of, steered or tuned is not the one that was asked for: it ends before anything moves.
        let factors = links.as_ref().is_some_and(|links| links.tune.is_some()).then(tuning::reader);
        let topics = links.map(Topics::start);
        if matches!(topics, Some(Err(_))) {
            punctual::shutdown();
        }
        let local = Local {
            gimbal,
            recording,
            gave_up,
            position_loops,
            current_loops,
            timeline,
            records,
            topics,
            wanted,
            factors,
        };
        (shared, local)
    }

    #[task(
        priority = 3,
        period = 100.micros(),
        shared = [voltages_v, setpoints_rad],
        local = [
            gimbal, recording, gave_up, topics,
            start: Option<Instant> = None, samples: u64 = 0, failures: u32 = 0,
        ]
    )]
    fn sample(mut cx: sample::Context) {
        let start = *cx.local.start.get_or_insert(cx.released);
        START.store(start.as_ticks(), Ordering::Relaxed);
        let voltages_v = cx.shared.voltages_v.lock(|voltages_v| *voltages_v);
        let turn = *cx.local.samples;
        *cx.local.samples += 1;

        let Ok(feedback) = cx.local.gimbal.exchange(voltages_v) else {
            *cx.local.failures += 1;
            if *cx.local.failures == MAX_FAILURES {
                *cx.local.gave_up = true;
                punctual::shutdown();
            }
            return;
        };
        *cx.local.failures = 0;
        if let Some(Ok(topics)) = cx.local.topics
            && topics.sample(cx.released, feedback.currents_a())
        {
            let setpoints_rad = cx.shared.setpoints_rad.lock(|setpoints_rad| *setpoints_rad);
            topics.angles(cx.released, feedback.angles_rad(), setpoints_rad);
        }

        if !turn.is_multiple_of(SAMPLES_PER_POSITION) {
            // A full queue means that the loops are behind; the next sample brings newer values.
            let _ = current::spawn(feedback.currents_a());
            return;
        }
        let measured_rad = feedback.angles_rad();
        if (turn / SAMPLES_PER_POSITION).is_multiple_of(cx.local.recording.every) {
            cx.local.recording.recorder.record(Sample {
                t_ns: (punctual::now() - start).as_ticks(),
                setpoint_rad: cx.shared.setpoints_rad.lock(|setpoints_rad| *setpoints_rad),
                measured_rad,
                true_rad: cx.local.gimbal.device().true_rad(),
            });
        }
        let _ = position::spawn(measured_rad, feedback.currents_a());
    }

    // Spawned by every tenth job of `sample`, whose releases may be late.
    #[task(
        priority = 2,
        shared = [setpoints_rad, current_setpoints_a],
        local = [position_loops, factors],
        deadline = 1.millis(),
        min_interval = 800.micros(),
    )]
    fn position(mut cx: position::Context, measured_rad: Axes<f64>, currents_a: Axes<f64>) {
        if let Some(reading) = cx.local.factors.as_mut().map(TunableReader::read)
            && reading.is_new
        {
            let loops = cx.local.position_loops.as_mut().zip(reading.value.gains());
            loops.map(|(position_loop, gains)| position_loop.set_gains(gains));
        }
        let setpoints_rad = cx.shared.setpoints_rad.lock(|setpoints_rad| *setpoints_rad);
        let wanted_a = cx.local.position_loops.update(setpoints_rad, measured_rad);
        cx.shared.current_setpoints_a.lock(|current_setpoints_a| *current_setpoints_a = wanted_a);
        let _ = current::spawn(currents_a);
    }

    #[task(priority = 4, shared = [current_setpoints_a, voltages_v], local = [current_loops], deadline = 100.micros())]
    fn current(mut cx: current::Context, measured_a: Axes<f64>) {
        let wanted_a = cx.shared.current_setpoints_a.lock(|current_setpoints_a| *current_setpoints_a);
        let volts = cx.local.current_loops.update(wanted_a, measured_a);
        cx.shared.voltages_v.lock(|voltages_v| *voltages_v = volts);
    }

    #[task(
        priority = 1,
        period = 1.millis(),
        shared = [setpoints_rad],
        local = [timeline, wanted, start: Option<Instant> = None]
    )]
    fn setpoint(mut cx: setpoint::Context) {
        if let Some(wanted_rad) = cx.local.wanted.as_mut().and_then(Wanted::newer) {
            cx.shared.setpoints_rad.lock(|setpoints_rad| *setpoints_rad = wanted_rad);
        }
        if cx.local.timeline.is_empty() {
            return;
        }
        let start = *cx.local.start.get_or_insert(cx.released);
        let coming = (cx.released - start).as_ticks() + POSITION_PERIOD_NS;
        let wanted_rad = cx.local.timeline.at(coming);
        cx.shared.setpoints_rad.lock(|setpoints_rad| *setpoints_rad = wanted_rad);
    }

    #[task(priority = 1, capacity = 64, shared = [setpoints_rad])]
    fn steer(mut cx: steer::Context, wanted_rad: Axes<f64>) {
        cx.shared.setpoints_rad.lock(|setpoints_rad| *setpoints_rad = wanted_rad);
    }

    pub(super) fn steer_from_outside(time_s: Option<f64>, angles_rad: Axes<f64>) -> bool {
        let Some(time_s) = time_s else { return steer::spawn(angles_rad).is_ok() };
        let mut start = START.load(Ordering::Relaxed);
        while start == 0 {
            std::thread::sleep(std::time::Duration::from_millis(1));
            start = START.load(Ordering::Relaxed);
        }
        let time = Instant::from_ticks(start) + Duration::from_nanos((time_s * 1e9) as u64);
        steer::spawn_at(time, angles_rad).is_ok()
    }

    #[shutdown(local = [gimbal, recording, gave_up, records, topics])]
    fn shutdown(cx: shutdown::Context) {
        let recorder =
            std::mem::replace(&mut cx.local.recording.recorder, crate::log::Recorder::with_capacity(0));
        let (link, gave_up) = (cx.local.gimbal.counters(), *cx.local.gave_up);
        let topics = cx.local.topics.take().map(|topics| topics.map(Topics::finish));
        // Nobody listens any more only if the caller of `run` has panicked.
        let _ = cx.local.records.send(Record { recorder, link, gave_up, topics });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::simulated;
    use crate::plant::GIMBAL;
    use crate::reference;

    #[test]
    fn matches_reference_bit_for_bit_in_virtual_time() {
        let timeline = Timeline::built_in(1.0);
        let setpoints = Setpoints::Timeline(timeline.clone());
        let outcome = run(Config::new().virtual_time(), simulated(), 1.0, setpoints, None).unwrap();
        let record = outcome.record.unwrap();
        // The last sample of the reference lies at the very end, when the app has stopped.
        let reference = reference::run(GIMBAL, |t_ns| timeline.at(t_ns), 999_900_000);
        assert_eq!(record.recorder.samples(), reference.samples());
        assert_eq!(outcome.report.task("sample").unwrap().jobs, 10_000);
        assert_eq!(outcome.report.task("position").unwrap().jobs, 1_000);
        assert_eq!(outcome.report.task("current").unwrap().jobs, 10_000);
        assert_eq!(record.link.exchanges, 10_000);
    }
}

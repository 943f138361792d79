//! The tasks of the controller: one source for Linux and for a board without an operating system.
//!
//! | task | level | released | function |
//! |---|---|---|---|
//! | `current` | 4 | by `sample` or `position` | current loops of both axes, 10 kHz |
//! | `sample` | 3 | every 100 µs | exchanges voltages for angles and currents over SPI |
//! | `position` | 2 | by every tenth `sample` | position loops, 1 kHz, with the tuned gains, then the current loops |
//! | `setpoint` | 1 | every 1 ms | looks up the setpoints of the next millisecond, or takes the newest of the topic |
//! | `steer` | 1 | from the standard input | sets the setpoints by hand |
//!
//! The current loops have a higher level than the sampling, so spawning them is a function call:
//! from one period to the next the kernel is entered only to sleep. In periods of the position
//! loops, the current loops are chained after them instead of being spawned by `sample`, so that
//! they use the new current setpoints.
//!
//! `cfg` removes parts that a board does not support: files and descriptors for topics, tuning and
//! setpoints by hand. This file is included by [`controller.rs`](../controller.rs) on Linux and by
//! `bare/programs/src/bin/gimbal.rs` on a board; these provide the bus and process the record.

use crate::client::LinkCounters;
use crate::log::Recorder;
use crate::setpoints::Timeline;
#[cfg(target_os = "linux")]
use crate::topics::{Carried, LinkError};

/// The number of consecutive exchanges that may fail before the controller gives up: 10 ms without
/// control, or longer if the bus waits for each.
const MAX_FAILURES: u32 = 100;

/// The result of a run.
#[derive(Debug)]
pub struct Record {
    /// Angles and setpoints over time.
    pub recorder: Recorder,
    /// The traffic on the bus.
    pub link: LinkCounters,
    /// Whether the bus failed for so long that the controller gave up.
    pub gave_up: bool,
    /// The statistics of the topics, if there were links.
    #[cfg(target_os = "linux")]
    pub topics: Option<Result<Carried, LinkError>>,
}

/// The source of setpoints.
#[derive(Debug, Clone)]
pub enum Setpoints {
    /// Known beforehand.
    Timeline(Timeline),
    /// From `steer`, called by this function on an ordinary thread that is started with the app.
    #[cfg(target_os = "linux")]
    ByHand(fn()),
    /// From the topic `/setpoint`.
    #[cfg(target_os = "linux")]
    Topic,
}

/// A recorder that records every nth position period.
#[derive(Debug)]
pub struct Recording {
    pub(crate) recorder: Recorder,
    pub(crate) every: u64,
}

#[cfg_attr(target_os = "linux", punctual::app(main = false, profile))]
#[cfg_attr(target_os = "none", punctual::app(main = false, report = "always"))]
pub(crate) mod app {
    use core::sync::atomic::{AtomicU64, Ordering};

    #[cfg(target_os = "linux")]
    use punctual::Duration;
    use punctual::Instant;
    use punctual::prelude::*;
    #[cfg(target_os = "linux")]
    use punctual_bridge::TunableReader;

    use super::{MAX_FAILURES, Record, Recording, Setpoints};
    use crate::axes::Axes;
    use crate::bus::Bus;
    use crate::client::Gimbal;
    use crate::control::{CurrentController, POSITION_PERIOD_NS, PositionController};
    use crate::controller::{Links, Records};
    use crate::log::{Recorder, Sample};
    use crate::plant::{GIMBAL, SUPPLY_V};
    use crate::setpoints::Timeline;
    #[cfg(target_os = "linux")]
    use crate::topics::{LinkError, Topics, Wanted};
    #[cfg(target_os = "linux")]
    use crate::tuning::{self, Factors};

    /// The number of samples per run of the position loops.
    const SAMPLES_PER_POSITION: u64 = 10;

    /// The release of the first sample (ns), for code outside that uses the time of the run.
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
        records: Records,
        #[cfg(target_os = "linux")]
        topics: Option<Result<Topics, LinkError>>,
        #[cfg(target_os = "linux")]
        wanted: Option<Wanted>,
        #[cfg(target_os = "linux")]
        factors: Option<TunableReader<Factors>>,
    }

    #[init]
    fn init(
        _: init::Context,
        gimbal: Gimbal<Bus>,
        setpoints: Setpoints,
        recording: Recording,
        links: Option<Links>,
        records: Records,
    ) -> (Shared, Local) {
        START.store(0, Ordering::Relaxed);
        #[cfg(target_os = "linux")]
        let wanted = matches!(setpoints, Setpoints::Topic).then(Wanted::new);
        #[cfg_attr(
            not(target_os = "linux"),
            expect(clippy::infallible_destructuring_match, reason = "Linux has further setpoints")
        )]
        let timeline = match setpoints {
            Setpoints::Timeline(timeline) => timeline,
            #[cfg(target_os = "linux")]
            Setpoints::ByHand(read) => {
                punctual::background::spawn("setpoints", read).expect("a thread can be started");
                Timeline::new()
            }
            #[cfg(target_os = "linux")]
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
        #[cfg(target_os = "none")]
        let _: Option<Links> = links;
        // A run that cannot be recorded, steered or tuned is not the requested one: it ends before
        // anything moves.
        #[cfg(target_os = "linux")]
        let factors = links.as_ref().is_some_and(|links| links.tune.is_some()).then(tuning::reader);
        #[cfg(target_os = "linux")]
        let topics = links.map(Topics::start);
        #[cfg(target_os = "linux")]
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
            #[cfg(target_os = "linux")]
            topics,
            #[cfg(target_os = "linux")]
            wanted,
            #[cfg(target_os = "linux")]
            factors,
        };
        (shared, local)
    }

    #[task(
        priority = 3,
        period = 100.micros(),
        shared = [voltages_v, setpoints_rad],
        local = [
            gimbal, recording, gave_up, #[cfg(target_os = "linux")] topics,
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
        #[cfg(target_os = "linux")]
        if let Some(Ok(topics)) = cx.local.topics
            && topics.sample(cx.released, feedback.currents_a())
        {
            let setpoints_rad = cx.shared.setpoints_rad.lock(|setpoints_rad| *setpoints_rad);
            topics.angles(cx.released, feedback.angles_rad(), setpoints_rad);
        }

        if !turn.is_multiple_of(SAMPLES_PER_POSITION) {
            // A full queue means that the loops are late; the next sample has newer values.
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
        local = [position_loops, #[cfg(target_os = "linux")] factors],
        deadline = 1.millis(),
        min_interval = 800.micros(),
    )]
    fn position(mut cx: position::Context, measured_rad: Axes<f64>, currents_a: Axes<f64>) {
        #[cfg(target_os = "linux")]
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
        local = [timeline, #[cfg(target_os = "linux")] wanted, start: Option<Instant> = None]
    )]
    fn setpoint(mut cx: setpoint::Context) {
        #[cfg(target_os = "linux")]
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

    #[cfg(target_os = "linux")]
    pub(crate) fn steer_from_outside(time_s: Option<f64>, angles_rad: Axes<f64>) -> bool {
        let Some(time_s) = time_s else { return steer::spawn(angles_rad).is_ok() };
        let mut start = START.load(Ordering::Relaxed);
        while start == 0 {
            std::thread::sleep(std::time::Duration::from_millis(1));
            start = START.load(Ordering::Relaxed);
        }
        let time = Instant::from_ticks(start) + Duration::from_nanos((time_s * 1e9) as u64);
        steer::spawn_at(time, angles_rad).is_ok()
    }

    #[shutdown(local = [gimbal, recording, gave_up, records, #[cfg(target_os = "linux")] topics])]
    fn shutdown(cx: shutdown::Context) {
        let recorder = core::mem::replace(&mut cx.local.recording.recorder, Recorder::with_capacity(0));
        let (link, gave_up) = (cx.local.gimbal.counters(), *cx.local.gave_up);
        #[cfg(target_os = "linux")]
        let topics = cx.local.topics.take().map(|topics| topics.map(Topics::finish));
        cx.local.records.hand_over(Record {
            recorder,
            link,
            gave_up,
            #[cfg(target_os = "linux")]
            topics,
        });
    }
}

//! Drives on EtherCAT, controlled with [`ethercrab`]: a crate to copy for EtherCAT.
//!
//! The task `cycle` exchanges the process data on the grid. Each job takes the frame that the last
//! one sent, computes the outputs from its inputs, and sends the next frame, so inputs are one
//! period old and a job never waits for the network: [`link::RawSocket`] hands frames to the driver
//! and fetches them without blocking, and no other thread takes part. SYNC0 of the distributed
//! clocks has the same period, and the grid follows it at a distance of [`PHASE`]: each frame
//! carries the time of the reference, which the job records for [`DISTRIBUTED_CLOCK`].
//!
//! Faults are counted by kind ([`bus::Fault`]). A lost frame is repeated with the next one;
//! [`MAX_LOST`] in a row, a wrong working counter or a SubDevice that leaves OP disable all drives
//! at once and stop the app, which then requests Init. If the app dies instead, the watchdogs of
//! the drives expire.
//!
//! [`simulated`] contains the drives, with a state machine, an EEPROM, sync managers, FMMUs and
//! distributed clocks. This crate has been tested with them only, in virtual time, on threads, and
//! over a pair of Ethernet interfaces.

pub mod bus;
pub mod link;
pub mod simulated;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};

use bus::{Fault, MAX_SUBDEVICES};
use punctual::ExternalClock;
use simulated::esc::ENABLE;

/// Period of the exchange and of SYNC0.
pub const PERIOD: punctual::Duration = punctual::Duration::from_millis(2);
/// Time from SYNC0 to the release of a job: frames pass the drives in the middle between two
/// pulses.
pub const PHASE: punctual::Duration = punctual::Duration::from_millis(1);
/// Clock of the drives, which the grid follows.
pub static DISTRIBUTED_CLOCK: ExternalClock = ExternalClock::new();
/// Lost frames in a row, after which the app stops.
pub const MAX_LOST: u32 = 5;
/// Highest velocity, in increments of the encoder per SYNC0.
pub const MAX_VELOCITY: i32 = 50;

/// Counts of the bus, and the last positions.
#[derive(Debug, Default)]
pub struct Counts {
    /// Exchanges whose frame returned in time and complete.
    pub exchanges: AtomicU64,
    /// See [`Fault::Lost`].
    pub lost: AtomicU64,
    /// See [`Fault::WorkingCounter`].
    pub incomplete: AtomicU64,
    /// See [`Fault::NotOperational`].
    pub not_operational: AtomicU64,
    /// See [`Fault::Protocol`].
    pub protocol: AtomicU64,
    /// Frames that belong to no exchange, as late ones.
    pub unexpected: AtomicU64,
    /// Time from SYNC0 to the frame's passage of the reference, in nanoseconds.
    pub phase_ns: AtomicU64,
    /// Last positions, in increments of the encoder.
    pub positions: [AtomicI32; MAX_SUBDEVICES],
    /// Fault that stopped the app.
    pub reason: OnceLock<Fault>,
}

impl Counts {
    fn count(&self, fault: Fault) {
        let counter = match fault {
            Fault::Lost => &self.lost,
            Fault::WorkingCounter(_) => &self.incomplete,
            Fault::NotOperational(_) => &self.not_operational,
            Fault::Protocol(_) => &self.protocol,
        };
        counter.fetch_add(1, Relaxed);
    }
}

/// Writes the outputs of a drive: control word, velocity.
fn write_outputs(outputs: &mut [u8], velocity: Option<i32>) {
    outputs.fill(0);
    if let (Some(velocity), Some((control, rest))) = (velocity, outputs.split_first_chunk_mut()) {
        *control = ENABLE.to_le_bytes();
        if let Some(value) = rest.first_chunk_mut() {
            *value = velocity.to_le_bytes();
        }
    }
}

/// Reads the position from the inputs of a drive: status word, position.
fn read_position(inputs: &[u8]) -> Option<i32> {
    inputs.get(2..)?.first_chunk().map(|bytes| i32::from_le_bytes(*bytes))
}

/// The controller.
#[punctual::app(main = false)]
pub mod app {
    use std::sync::Arc;
    use std::sync::atomic::Ordering::Relaxed;

    use punctual::ClockSource;

    use super::bus::{Bus, Fault, MAX_SUBDEVICES};
    use super::{
        Counts, DISTRIBUTED_CLOCK, MAX_LOST, MAX_VELOCITY, PERIOD, PHASE, read_position, write_outputs,
    };

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        bus: Bus,
        clock: ClockSource,
        counts: Arc<Counts>,
        goal: i32,
        cycles: u64,
    }

    #[init]
    fn init(_: init::Context, bus: Bus, counts: Arc<Counts>, goal: i32, cycles: u64) -> (Shared, Local) {
        let clock = DISTRIBUTED_CLOCK.source().expect("the last run has dropped its source");
        (Shared {}, Local { bus, clock, counts, goal, cycles })
    }

    #[task(
        period = PERIOD,
        offset = PHASE,
        clock = DISTRIBUTED_CLOCK,
        priority = 1,
        local = [
            bus, clock, counts, goal, cycles,
            positions: [i32; MAX_SUBDEVICES] = [0; MAX_SUBDEVICES],
            lost_in_a_row: u32 = 0,
        ],
    )]
    fn cycle(cx: cycle::Context) {
        let cycle::LocalResources { bus, clock, counts, goal, cycles, positions, lost_in_a_row, .. } =
            cx.local;
        let result = bus.receive(|index, inputs| {
            if let Some(position) = read_position(inputs) {
                positions[index] = position;
                counts.positions[index].store(position, Relaxed);
            }
        });
        let mut is_operational = true;
        match result {
            Ok(Some(passage)) => {
                *lost_in_a_row = 0;
                counts.exchanges.fetch_add(1, Relaxed);
                counts.phase_ns.store(passage.phase_ns, Relaxed);
                // The frame needs some microseconds to the reference: the constant part of the
                // phase.
                let _ = clock.record(passage.sent_at, passage.system_time_ns);
            }
            // The drives are reaching OP.
            Ok(None) => (*lost_in_a_row, is_operational) = (0, false),
            Err(fault) => {
                counts.count(fault);
                *lost_in_a_row += 1;
                if fault != Fault::Lost || *lost_in_a_row >= MAX_LOST {
                    let _ = counts.reason.set(fault);
                    is_operational = false;
                }
            }
        }
        counts.unexpected.store(bus.unexpected(), Relaxed);
        bus.send(|index, outputs| {
            // A quarter of the way: stable, even if a position is some cycles old.
            let way = goal.saturating_sub(positions[index]);
            let velocity = (way / 4 + (way % 4).signum()).clamp(-MAX_VELOCITY, MAX_VELOCITY);
            write_outputs(outputs, is_operational.then_some(velocity));
        });
        *cycles = cycles.saturating_sub(1);
        if counts.reason.get().is_some() || *cycles == 0 {
            punctual::shutdown();
        }
    }

    #[shutdown(local = [bus])]
    fn stop(cx: stop::Context) {
        cx.local.bus.stop();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use ethercrab::SubDeviceState;
    use punctual::Config;
    use punctual::report::ClockState;

    use super::*;
    use crate::bus::{Bus, StartError};
    use crate::simulated::esc::{AlState, Drive, WATCHDOG_NS, code};
    use crate::simulated::{CABLE_NS, Faults, Network, SharedNetwork, SimulatedLink, lock};

    const GOAL: i32 = 1_000;

    fn start(drives: u32) -> (SharedNetwork, Result<Bus, StartError>) {
        let network = Arc::new(Mutex::new(Network::new(drives, Faults::default())));
        let link = Box::new(SimulatedLink::new(Arc::clone(&network)));
        let bus = Bus::start(link, PERIOD.into());
        (network, bus)
    }

    /// Runs the app in virtual time, with faults that count from its first exchange.
    fn run(faults: Faults, cycles: u64) -> (Arc<Counts>, SharedNetwork) {
        let (network, bus) = start(2);
        let bus = bus.unwrap();
        lock(&network).set_faults(faults);
        let counts = Arc::<Counts>::default();
        let config = Config::new().virtual_time().until(Duration::from_secs(60));
        app::run(config, bus, Arc::clone(&counts), GOAL, cycles).unwrap();
        (counts, network)
    }

    fn faults_of(counts: &Counts) -> [u64; 4] {
        [&counts.lost, &counts.incomplete, &counts.not_operational, &counts.protocol]
            .map(|counter| counter.load(Relaxed))
    }

    /// The grid of positions lets the loop move by an increment for ever.
    fn are_at_goal(network: &SharedNetwork) -> bool {
        lock(network).drives().iter().all(|drive| drive.position().abs_diff(GOAL) <= 2)
    }

    #[test]
    fn brings_drives_to_op_with_aligned_clocks() {
        let (network, bus) = start(3);
        assert_eq!(bus.unwrap().subdevices(), 3);
        let network = lock(&network);
        let stations: Vec<u16> = network.drives().iter().map(Drive::station).collect();
        assert_eq!(stations, [0x1000, 0x1001, 0x1002]);
        for (index, drive) in network.drives().iter().enumerate() {
            assert_eq!((drive.state(), drive.error()), (AlState::SafeOp, 0));
            assert_eq!(u64::from(drive.delay()), CABLE_NS * index as u64);
        }
    }

    #[test]
    fn moves_drives_to_goal_and_ends_in_init() {
        let (counts, network) = run(Faults::default(), 300);
        assert_eq!(faults_of(&counts), [0; 4], "{counts:?}");
        // The first SYNC0 lets the drives reach OP.
        assert!(counts.exchanges.load(Relaxed) >= 290, "{counts:?}");
        assert!(are_at_goal(&network), "{counts:?}");
        assert!(counts.positions[1].load(Relaxed).abs_diff(GOAL) <= 2, "{counts:?}");
        let network = lock(&network);
        assert!(network.drives().iter().all(|drive| drive.state() == AlState::Init));
    }

    #[test]
    fn locks_grid_to_distributed_clocks() {
        let (network, bus) = start(2);
        let counts = Arc::<Counts>::default();
        let config = Config::new().virtual_time().until(Duration::from_secs(60));
        let report = app::run(config, bus.unwrap(), Arc::clone(&counts), GOAL, 3_000).unwrap();
        drop(network);
        let clock = report.task("cycle").and_then(|task| task.clock).unwrap();
        assert_eq!(clock.state, ClockState::Locked, "{clock:?}");
        // The quartz of the reference is 30 ppm fast.
        assert!(clock.drift_ppb.unwrap().abs_diff(30_000) < 500, "{clock:?}");
        let phase = counts.phase_ns.load(Relaxed);
        assert!(phase.abs_diff(PHASE.as_nanos()) < 1_000, "{phase} ns");
    }

    #[test]
    fn continues_after_lost_and_late_frames() {
        let faults = Faults { lost: vec![20, 21, 22, 23, 40], late: vec![60, 80], ..Faults::default() };
        let (counts, network) = run(faults, 300);
        assert_eq!(faults_of(&counts), [7, 0, 0, 0], "{counts:?}");
        assert_eq!(counts.unexpected.load(Relaxed), 2);
        assert!(counts.reason.get().is_none() && are_at_goal(&network), "{counts:?}");
    }

    /// While the drives reach OP as well.
    #[test]
    fn continues_after_lost_frames_not_in_a_row() {
        let faults = Faults { lost: vec![1, 2, 4, 5, 6], ..Faults::default() };
        let (counts, network) = run(faults, 300);
        assert_eq!((faults_of(&counts), counts.reason.get()), ([5, 0, 0, 0], None));
        assert!(are_at_goal(&network));
    }

    #[test]
    fn disables_drives_and_stops_after_lost_frames_in_a_row() {
        let (counts, network) = run(Faults { cut_at: Some(20), ..Faults::default() }, u64::MAX);
        assert_eq!(counts.reason.get(), Some(&Fault::Lost));
        assert_eq!(faults_of(&counts), [u64::from(MAX_LOST), 0, 0, 0]);
        assert!(lock(&network).drives().iter().all(|drive| !drive.is_enabled()));
    }

    #[test]
    fn stops_at_once_if_drive_leaves_op() {
        let (counts, network) = run(Faults { fails_at: Some(20), ..Faults::default() }, u64::MAX);
        assert_eq!(counts.reason.get(), Some(&Fault::NotOperational(SubDeviceState::SafeOp)));
        assert_eq!(faults_of(&counts), [0, 0, 1, 0]);
        assert!(lock(&network).drives().iter().all(|drive| !drive.is_enabled()));
        assert!(!are_at_goal(&network));
    }

    #[test]
    fn stops_at_once_if_drive_loses_supply() {
        let (counts, network) = run(Faults { power_off_at: Some(20), ..Faults::default() }, u64::MAX);
        assert_eq!(counts.reason.get(), Some(&Fault::WorkingCounter(3)));
        assert_eq!(faults_of(&counts), [0, 1, 0, 0]);
        let network = lock(&network);
        assert!(!network.drives()[0].is_enabled());
        assert_eq!(network.drives()[0].state(), AlState::Init);
    }

    #[test]
    fn watchdog_disables_drive_without_controller() {
        let (network, bus) = start(1);
        let mut bus = bus.unwrap();
        for _ in 0..2 {
            bus.send(|_, outputs| write_outputs(outputs, Some(MAX_VELOCITY)));
            bus.receive(|_, _| {}).unwrap();
            lock(&network).wait(WATCHDOG_NS / 2);
        }
        let mut network = lock(&network);
        assert_eq!(
            (network.drives()[0].state(), network.drives()[0].velocity()),
            (AlState::Op, MAX_VELOCITY)
        );
        network.wait(WATCHDOG_NS + 1);
        assert_eq!(
            (network.drives()[0].state(), network.drives()[0].error()),
            (AlState::SafeOp, code::WATCHDOG)
        );
        assert_eq!(network.drives()[0].velocity(), 0);
    }

    #[test]
    fn reports_bus_without_subdevices() {
        assert!(matches!(start(0).1, Err(StartError::NoSubDevice)));
    }
}

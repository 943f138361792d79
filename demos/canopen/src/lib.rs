//! A drive on a CAN bus, controlled by CANopen: a crate to copy for CAN.
//!
//! The task `cycle` sends SYNC and the drive's velocity on the grid; the task `receive` is bound to
//! the socket and takes position, heartbeat and emergencies. A drive that restarts is set to
//! operational again. If its heartbeat is missing for [`HEARTBEAT_CYCLES`] cycles, the velocity is
//! zero and the app stops. [`simulated`] is a drive on a simulated bus, or on a virtual one (vcan).

pub mod simulated;
pub mod socket;

use std::sync::atomic::{AtomicI64, AtomicU64};

use socket::CanFrame;

/// Number of the drive's node.
pub const NODE: u8 = 5;
/// Cycles without a heartbeat, after which the drive is lost.
pub const HEARTBEAT_CYCLES: u32 = 100;
/// Highest velocity, in increments of the encoder per cycle.
pub const MAX_VELOCITY: i32 = 50;

/// Identifiers of CiA 301, without the number of the node.
pub mod id {
    /// Network management.
    pub const NMT: u32 = 0;
    /// Synchronization, and emergencies of a node.
    pub const SYNC: u32 = 0x80;
    /// First process data object from a node.
    pub const TPDO1: u32 = 0x180;
    /// First process data object to a node.
    pub const RPDO1: u32 = 0x200;
    /// Heartbeat.
    pub const HEARTBEAT: u32 = 0x700;
}

/// State of a node, as in its heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeState {
    /// Restarted, or not started yet.
    PreOperational,
    /// Follows its process data.
    Operational,
    /// Stopped, or of no known kind.
    Other(u8),
}

/// A message of the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// Position, in increments of the encoder.
    Position(i32),
    /// Heartbeat.
    Heartbeat(NodeState),
    /// Emergency with this error code.
    Emergency(u16),
}

impl Message {
    /// Decodes a frame of the drive; `None` for frames of others, and of a wrong length.
    #[must_use]
    pub fn decode(frame: &CanFrame) -> Option<Self> {
        let base = frame.id().checked_sub(u32::from(NODE))?;
        match (base, frame.data()) {
            (id::TPDO1, &[a, b, c, d]) => Some(Self::Position(i32::from_le_bytes([a, b, c, d]))),
            (id::SYNC, &[low, high, ..]) => Some(Self::Emergency(u16::from_le_bytes([low, high]))),
            (id::HEARTBEAT, &[0 | 0x7f]) => Some(Self::Heartbeat(NodeState::PreOperational)),
            (id::HEARTBEAT, &[5]) => Some(Self::Heartbeat(NodeState::Operational)),
            (id::HEARTBEAT, &[other]) => Some(Self::Heartbeat(NodeState::Other(other))),
            _ => None,
        }
    }
}

/// Returns the frame that sets the drive to operational.
#[must_use]
pub fn start_node() -> CanFrame {
    CanFrame::new(id::NMT as u16, &[1, NODE])
}

/// Returns the frame with the drive's velocity, in increments per cycle.
#[must_use]
pub fn velocity(velocity: i32) -> CanFrame {
    CanFrame::new(id::RPDO1 as u16 + u16::from(NODE), &velocity.to_le_bytes())
}

/// Counts of the bus, and the drive's last position.
#[derive(Debug, Default)]
pub struct Counts {
    /// Positions received.
    pub positions: AtomicU64,
    /// Starts of the drive.
    pub starts: AtomicU64,
    /// Emergencies.
    pub emergencies: AtomicU64,
    /// Frames of other nodes, or of a wrong length.
    pub foreign: AtomicU64,
    /// Frames that the interface did not take.
    pub unsent: AtomicU64,
    /// 1 if the heartbeat was missing.
    pub lost: AtomicU64,
    /// Last position, in increments of the encoder.
    pub position: AtomicI64,
}

/// The controller.
#[punctual::app(main = false)]
pub mod app {
    use std::sync::Arc;
    use std::sync::atomic::Ordering::Relaxed;

    use punctual::prelude::*;

    use super::socket::{CanFrame, CanSocket};
    use super::{Counts, HEARTBEAT_CYCLES, MAX_VELOCITY, Message, NodeState, id, start_node, velocity};

    #[shared]
    struct Shared {
        position: i32,
        silent_cycles: u32,
    }

    #[local]
    struct Local {
        input: CanSocket,
        output: CanSocket,
        sender: Arc<Counts>,
        receiver: Arc<Counts>,
        goal: i32,
        cycles: u64,
    }

    #[init]
    fn init(
        _: init::Context,
        bus: CanSocket,
        counts: Arc<Counts>,
        goal: i32,
        cycles: u64,
    ) -> (Shared, Local) {
        let output = bus.try_clone().expect("a descriptor is free");
        let (sender, receiver) = (Arc::clone(&counts), counts);
        let local = Local { input: bus, output, sender, receiver, goal, cycles };
        (Shared { position: 0, silent_cycles: 0 }, local)
    }

    #[task(
        period = 10.millis(),
        priority = 2,
        local = [output, sender, goal, cycles],
        shared = [position, silent_cycles],
    )]
    fn cycle(cx: cycle::Context) {
        let (counts, goal) = (cx.local.sender, *cx.local.goal);
        let (position, silent) = (cx.shared.position, cx.shared.silent_cycles).lock(|position, silent| {
            *silent += 1;
            (*position, *silent)
        });
        let is_lost = silent > HEARTBEAT_CYCLES;
        // A quarter of the way: stable, even if a position is some cycles old.
        let wanted = goal.saturating_sub(position);
        let quarter = wanted / 4 + (wanted % 4).signum();
        let demand = if is_lost { 0 } else { quarter.clamp(-MAX_VELOCITY, MAX_VELOCITY) };
        for frame in [velocity(demand), CanFrame::new(id::SYNC as u16, &[])] {
            if cx.local.output.send(&frame).is_err() {
                counts.unsent.fetch_add(1, Relaxed);
            }
        }
        *cx.local.cycles = cx.local.cycles.saturating_sub(1);
        if is_lost || *cx.local.cycles == 0 {
            counts.lost.store(is_lost.into(), Relaxed);
            punctual::shutdown();
        }
    }

    #[task(
        binds = input,
        priority = 1,
        local = [input, receiver],
        shared = [position, silent_cycles],
    )]
    fn receive(mut cx: receive::Context) {
        // An error, as of an interface that is down, leaves the heartbeat missing.
        let Ok(frame) = cx.local.input.receive() else { return };
        let counts = cx.local.receiver;
        match Message::decode(&frame) {
            Some(Message::Position(received)) => {
                cx.shared.position.lock(|position| *position = received);
                counts.position.store(received.into(), Relaxed);
                counts.positions.fetch_add(1, Relaxed);
            }
            Some(Message::Heartbeat(state)) => {
                cx.shared.silent_cycles.lock(|silent| *silent = 0);
                if state == NodeState::PreOperational {
                    counts.starts.fetch_add(1, Relaxed);
                    // The next heartbeat shows whether the drive has received it.
                    let _ = cx.local.input.send(&start_node());
                }
            }
            Some(Message::Emergency(_)) => _ = counts.emergencies.fetch_add(1, Relaxed),
            None => _ = counts.foreign.fetch_add(1, Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering::Relaxed;
    use std::time::Duration;

    use punctual::Config;

    use super::*;
    use crate::simulated::{Drive, Faults};
    use crate::socket::CanSocket;

    fn run(faults: Faults, cycles: u64) -> (Arc<Counts>, simulated::State) {
        let (bus, other) = CanSocket::pair().unwrap();
        let drive = Drive::start(other, faults).unwrap();
        let counts = Arc::<Counts>::default();
        let _alone = test_skip::alone();
        // Longer than the test takes on any machine.
        let config = Config::new().until(Duration::from_secs(120));
        app::run(config, bus, Arc::clone(&counts), 1_000, cycles).unwrap();
        (counts, drive.join())
    }

    #[test]
    fn decodes_only_messages_of_drive() {
        let decode = |id: u16, data: &[u8]| Message::decode(&CanFrame::new(id, data));
        assert_eq!(decode(0x185, &[0xfe, 0xff, 0xff, 0xff]), Some(Message::Position(-2)));
        assert_eq!(decode(0x085, &[0x10, 0x81, 0, 0, 0, 0, 0, 0]), Some(Message::Emergency(0x8110)));
        assert_eq!(decode(0x705, &[4]), Some(Message::Heartbeat(NodeState::Other(4))));
        for (id, data) in [(0x186, &[0; 4][..]), (0x185, &[0; 3]), (0x705, &[]), (0x085, &[1]), (0, &[1, 5])]
        {
            assert_eq!(decode(id, data), None, "{id:#x}");
        }
    }

    #[test]
    fn moves_drive_to_goal_and_starts_it_again_after_reset() {
        let (counts, state) = run(Faults { resets_at: Some(30), ends_at: None }, 300);
        assert_eq!(counts.lost.load(Relaxed), 0, "{counts:?}");
        assert!(counts.position.load(Relaxed).abs_diff(1_000) <= 2, "{counts:?}");
        assert!(counts.starts.load(Relaxed) >= 2 && state.is_operational, "{counts:?}");
        assert_eq!((counts.emergencies.load(Relaxed), counts.foreign.load(Relaxed)), (1, 1));
    }

    #[test]
    fn stops_without_heartbeat_after_commanding_zero_velocity() {
        let (counts, state) = run(Faults { resets_at: None, ends_at: Some(20) }, u64::MAX);
        assert_eq!(counts.lost.load(Relaxed), 1);
        assert_eq!(state.last_velocity, 0);
        assert!(counts.positions.load(Relaxed) <= 20);
    }
}

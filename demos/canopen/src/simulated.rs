//! A simulated drive.

use std::io;
use std::thread::JoinHandle;

use crate::socket::{CanFrame, CanSocket};
use crate::{NODE, id};

/// Faults of the drive.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults {
    /// Restarts at this SYNC, with an emergency.
    pub resets_at: Option<u64>,
    /// Sends nothing from this SYNC on.
    pub ends_at: Option<u64>,
}

/// State of the drive.
#[derive(Debug, Clone, Copy, Default)]
pub struct State {
    /// `true` if the drive follows its velocity.
    pub is_operational: bool,
    /// Last velocity received, in increments per SYNC.
    pub last_velocity: i32,
    position: i32,
    syncs: u64,
}

/// A running drive.
#[derive(Debug)]
pub struct Drive(JoinHandle<State>);

impl Drive {
    /// Starts a drive, which ends when the other end of a simulated bus is closed.
    ///
    /// # Errors
    /// Returns an error if the thread cannot be started.
    pub fn start(bus: CanSocket, faults: Faults) -> io::Result<Self> {
        punctual::background::spawn("drive", move || {
            let mut state = State::default();
            // The end of the bus is an error of the last call.
            let _ = run(&bus, faults, &mut state);
            state
        })
        .map(Self)
    }

    /// Waits until the drive has ended, and returns its last state.
    ///
    /// # Panics
    /// Panics if the drive has panicked.
    #[must_use]
    pub fn join(self) -> State {
        self.0.join().expect("the drive does not panic")
    }
}

fn run(bus: &CanSocket, faults: Faults, state: &mut State) -> io::Result<()> {
    let node = u16::from(NODE);
    let send = |base: u32, data: &[u8]| bus.send(&CanFrame::new(base as u16 + node, data));
    loop {
        let frame = bus.receive()?;
        match (frame.id(), frame.data()) {
            (id::NMT, &[1, NODE]) => state.is_operational = true,
            (id, &[a, b, c, d]) if id == id::RPDO1 + u32::from(NODE) => {
                state.last_velocity = i32::from_le_bytes([a, b, c, d]);
            }
            (id::SYNC, []) => {
                state.syncs += 1;
                if faults.ends_at.is_some_and(|end| state.syncs > end) {
                    continue;
                }
                if faults.resets_at == Some(state.syncs) {
                    state.is_operational = false;
                    send(id::SYNC, &[0x10, 0x81, 0, 0, 0, 0, 0, 0])?;
                    // Another node of the bus.
                    bus.send(&CanFrame::new(0x123, &[1]))?;
                }
                if state.is_operational {
                    state.position += state.last_velocity;
                    send(id::TPDO1, &state.position.to_le_bytes())?;
                }
                send(id::HEARTBEAT, &[if state.is_operational { 5 } else { 0x7f }])?;
            }
            _ => {}
        }
    }
}

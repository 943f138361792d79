//! A simulated autopilot, which treats setpoints, modes and failsafes as PX4 does.

use std::collections::VecDeque;
use std::io;
use std::net::UdpSocket;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mavlink::dialects::common::{
    COMMAND_ACK_DATA, COMMAND_LONG_DATA, HEARTBEAT_DATA, LOCAL_POSITION_NED_DATA, MavAutopilot, MavCmd,
    MavMessage, MavModeFlag, MavResult, MavState, MavSysStatusSensor, MavType, SYS_STATUS_DATA,
};

use crate::link::{AUTOPILOT, COMPANION, Decoder, Encoder, Link};
use crate::offboard::{MODE_OFFBOARD, Position};

/// Time without setpoints after which the autopilot leaves the offboard mode, in milliseconds.
pub const SETPOINT_TIMEOUT_MS: u64 = 500;
/// Time for which setpoints must have arrived before the offboard mode, in milliseconds.
pub const SETPOINT_LEAD_MS: u64 = 500;

/// Main modes of PX4.
pub const MODE_POSITION: u8 = 3;
/// See [`MODE_POSITION`].
pub const MODE_AUTO: u8 = 4;
/// Sub-mode of [`MODE_AUTO`].
const AUTO_LAND: u8 = 6;

const STEP_MS: u64 = 10;
const POSITION_PERIOD_MS: u64 = 50;
const STATUS_PERIOD_MS: u64 = 500;
/// Highest velocity, in meters per second.
const MAX_SPEED: f32 = 2.0;

/// Faults, by milliseconds since the start of the autopilot.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    /// Number of commands that are lost at first.
    pub lost_commands: u32,
    /// The autopilot refuses to arm.
    pub refuses_arming: bool,
    /// The autopilot accepts commands, which have no effect.
    pub ignores_commands: bool,
    /// The motors are too weak to take off.
    pub is_weak: bool,
    /// From here on, no message arrives at either end.
    pub link_lost_at: Option<u64>,
    /// The pilot switches to the position mode.
    pub takeover_at: Option<u64>,
    /// The remote control is lost.
    pub remote_control_lost_at: Option<u64>,
}

/// An autopilot.
#[derive(Debug, Default)]
pub struct Autopilot {
    faults: Faults,
    time_ms: u64,
    main_mode: u8,
    is_armed: bool,
    is_critical: bool,
    position: Position,
    target: Option<Position>,
    first_setpoint_ms: Option<u64>,
    last_setpoint_ms: u64,
    /// Longest time between two setpoints in the offboard mode, in milliseconds.
    longest_gap_ms: u64,
    failsafes: u32,
    highest: f32,
    commands: u64,
}

impl Autopilot {
    /// Returns an autopilot on the ground.
    #[must_use]
    pub fn new(faults: Faults) -> Self {
        Self { faults, main_mode: MODE_POSITION, ..Self::default() }
    }

    /// `true` while the motors run.
    #[must_use]
    pub fn is_armed(&self) -> bool {
        self.is_armed
    }

    /// Main mode.
    #[must_use]
    pub fn main_mode(&self) -> u8 {
        self.main_mode
    }

    /// Position.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position
    }

    /// Greatest altitude so far, in meters.
    #[must_use]
    pub fn highest(&self) -> f32 {
        self.highest
    }

    /// Number of times that setpoints were missing in the offboard mode.
    #[must_use]
    pub fn failsafes(&self) -> u32 {
        self.failsafes
    }

    /// Longest time between two setpoints in the offboard mode, in milliseconds.
    #[must_use]
    pub fn longest_gap_ms(&self) -> u64 {
        self.longest_gap_ms
    }

    /// Setpoints and commands that arrived after the pilot had taken over.
    #[must_use]
    pub fn commands_after_takeover(&self) -> u64 {
        self.commands
    }

    fn has_happened(&self, instant: Option<u64>) -> bool {
        instant.is_some_and(|instant| self.time_ms >= instant)
    }

    /// Returns whether the link is lost.
    fn is_disconnected(&self) -> bool {
        self.has_happened(self.faults.link_lost_at)
    }

    fn has_pilot(&self) -> bool {
        self.has_happened(self.faults.takeover_at)
    }

    /// Takes a message of the companion, and returns the answer.
    pub fn receive(&mut self, message: &MavMessage) -> Option<MavMessage> {
        if self.is_disconnected() {
            return None;
        }
        let is_order =
            matches!(message, MavMessage::SET_POSITION_TARGET_LOCAL_NED(_) | MavMessage::COMMAND_LONG(_));
        self.commands += u64::from(is_order && self.has_pilot());
        match message {
            MavMessage::SET_POSITION_TARGET_LOCAL_NED(setpoint) => {
                let is_recent = self.has_setpoints();
                if is_recent && self.main_mode == MODE_OFFBOARD {
                    self.longest_gap_ms = self.longest_gap_ms.max(self.time_ms - self.last_setpoint_ms);
                }
                if !is_recent {
                    self.first_setpoint_ms = Some(self.time_ms);
                }
                self.last_setpoint_ms = self.time_ms;
                self.target = Some([setpoint.x, setpoint.y, setpoint.z]);
                None
            }
            MavMessage::COMMAND_LONG(command) if self.faults.lost_commands == 0 => {
                let result = self.execute(command);
                Some(MavMessage::COMMAND_ACK(COMMAND_ACK_DATA { command: command.command, result }))
            }
            MavMessage::COMMAND_LONG(_) => {
                self.faults.lost_commands -= 1;
                None
            }
            _ => None,
        }
    }

    fn has_setpoints(&self) -> bool {
        self.first_setpoint_ms.is_some() && self.time_ms - self.last_setpoint_ms <= SETPOINT_TIMEOUT_MS
    }

    fn execute(&mut self, command: &COMMAND_LONG_DATA) -> MavResult {
        match command.command {
            _ if self.faults.ignores_commands => {}
            MavCmd::MAV_CMD_DO_SET_MODE if command.param2 == f32::from(MODE_OFFBOARD) => {
                let lead = self.first_setpoint_ms.map_or(0, |first| self.time_ms - first);
                if !self.has_setpoints() || lead < SETPOINT_LEAD_MS {
                    return MavResult::MAV_RESULT_TEMPORARILY_REJECTED;
                }
                self.main_mode = MODE_OFFBOARD;
            }
            MavCmd::MAV_CMD_COMPONENT_ARM_DISARM if self.faults.refuses_arming => {
                return MavResult::MAV_RESULT_DENIED;
            }
            MavCmd::MAV_CMD_COMPONENT_ARM_DISARM => self.is_armed = command.param1 == 1.0,
            MavCmd::MAV_CMD_NAV_LAND => self.main_mode = MODE_AUTO,
            _ => return MavResult::MAV_RESULT_UNSUPPORTED,
        }
        MavResult::MAV_RESULT_ACCEPTED
    }

    /// Lets time pass until `time_ms`, and passes the messages of the autopilot to `send`.
    pub fn advance(&mut self, time_ms: u64, mut send: impl FnMut(&MavMessage)) {
        while self.time_ms + STEP_MS <= time_ms {
            self.time_ms += STEP_MS;
            self.fly();
            if self.is_disconnected() {
                continue;
            }
            if self.time_ms.is_multiple_of(POSITION_PERIOD_MS) {
                send(&self.position_message());
            }
            if self.time_ms.is_multiple_of(STATUS_PERIOD_MS) {
                send(&self.heartbeat());
                send(&self.status());
            }
        }
    }

    fn fly(&mut self) {
        if self.has_pilot() && self.is_armed {
            self.main_mode = MODE_POSITION;
        }
        if self.main_mode == MODE_OFFBOARD && !self.has_setpoints() {
            self.failsafes += 1;
            (self.main_mode, self.is_critical) = (MODE_AUTO, true);
        }
        let [x, y, z] = self.position;
        let target = match self.main_mode {
            MODE_OFFBOARD => self.target.filter(|_| !self.faults.is_weak),
            MODE_AUTO => Some([x, y, 0.0]),
            _ => None,
        };
        let Some(target) = target.filter(|_| self.is_armed) else { return };
        let way: [f32; 3] = std::array::from_fn(|axis| target[axis] - self.position[axis]);
        let distance = way.iter().map(|way| way * way).sum::<f32>().sqrt();
        let step = MAX_SPEED * STEP_MS as f32 / 1_000.0;
        let part = if distance > step { step / distance } else { 1.0 };
        self.position = std::array::from_fn(|axis| self.position[axis] + part * way[axis]);
        self.highest = self.highest.max(-self.position[2]);
        if self.main_mode == MODE_AUTO && z == 0.0 {
            self.is_armed = false;
        }
    }

    fn heartbeat(&self) -> MavMessage {
        let armed = MavModeFlag::MAV_MODE_FLAG_SAFETY_ARMED;
        let custom = MavModeFlag::MAV_MODE_FLAG_CUSTOM_MODE_ENABLED;
        let sub_mode = if self.main_mode == MODE_AUTO { AUTO_LAND } else { 0 };
        let system_status = if self.is_critical {
            MavState::MAV_STATE_CRITICAL
        } else if self.is_armed {
            MavState::MAV_STATE_ACTIVE
        } else {
            MavState::MAV_STATE_STANDBY
        };
        MavMessage::HEARTBEAT(HEARTBEAT_DATA {
            custom_mode: u32::from(self.main_mode) << 16 | u32::from(sub_mode) << 24,
            mavtype: MavType::MAV_TYPE_QUADROTOR,
            autopilot: MavAutopilot::MAV_AUTOPILOT_PX4,
            base_mode: if self.is_armed { custom | armed } else { custom },
            system_status,
            mavlink_version: 3,
        })
    }

    fn position_message(&self) -> MavMessage {
        let [x, y, z] = self.position;
        MavMessage::LOCAL_POSITION_NED(LOCAL_POSITION_NED_DATA {
            time_boot_ms: self.time_ms as u32,
            x,
            y,
            z,
            ..LOCAL_POSITION_NED_DATA::DEFAULT
        })
    }

    fn status(&self) -> MavMessage {
        let receiver = MavSysStatusSensor::MAV_SYS_STATUS_SENSOR_RC_RECEIVER;
        let is_lost = self.has_happened(self.faults.remote_control_lost_at);
        MavMessage::SYS_STATUS(SYS_STATUS_DATA {
            onboard_control_sensors_present: receiver,
            onboard_control_sensors_enabled: receiver,
            onboard_control_sensors_health: if is_lost { MavSysStatusSensor::empty() } else { receiver },
            ..SYS_STATUS_DATA::DEFAULT
        })
    }
}

/// An autopilot that a test examines while an app uses it.
pub type SharedAutopilot = Arc<Mutex<Autopilot>>;

/// Locks an autopilot.
pub fn lock(autopilot: &SharedAutopilot) -> MutexGuard<'_, Autopilot> {
    autopilot.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A link to an autopilot in this process, also in virtual time.
#[derive(Debug)]
pub struct SimulatedLink {
    autopilot: SharedAutopilot,
    start_ms: Option<u64>,
    down: Wire,
    up: Wire,
}

/// One direction of a link.
#[derive(Debug)]
struct Wire {
    encoder: Encoder,
    decoder: Decoder,
    datagrams: VecDeque<Vec<u8>>,
}

impl Wire {
    fn new(from: crate::link::Address) -> Self {
        Self { encoder: Encoder::new(from), decoder: Decoder::new(from), datagrams: VecDeque::new() }
    }

    fn send(&mut self, message: &MavMessage) {
        self.datagrams.push_back(self.encoder.encode(message).to_vec());
    }

    fn receive(&mut self) -> Option<MavMessage> {
        let datagram = self.datagrams.pop_front()?;
        self.decoder.buffer()[..datagram.len()].copy_from_slice(&datagram);
        self.decoder.start(datagram.len());
        self.decoder.decode()
    }
}

impl SimulatedLink {
    /// Connects a companion to an autopilot.
    #[must_use]
    pub fn new(autopilot: SharedAutopilot) -> Self {
        Self { autopilot, start_ms: None, down: Wire::new(AUTOPILOT), up: Wire::new(COMPANION) }
    }
}

impl Link for SimulatedLink {
    fn send(&mut self, message: &MavMessage) -> io::Result<()> {
        self.up.send(message);
        let answer = self.up.receive().and_then(|message| lock(&self.autopilot).receive(&message));
        if let Some(answer) = answer {
            self.down.send(&answer);
        }
        Ok(())
    }

    fn receive(&mut self) -> Option<Option<MavMessage>> {
        let now_ms = punctual::now().duration_since_epoch().as_millis();
        let start_ms = *self.start_ms.get_or_insert(now_ms);
        lock(&self.autopilot).advance(now_ms - start_ms, |message| self.down.send(message));
        self.down.receive().map(Some)
    }
}

/// Simulates an autopilot at a UDP socket until the companion has been silent for `silence`.
///
/// # Errors
/// Returns the error of the socket.
pub fn serve(socket: &UdpSocket, autopilot: &SharedAutopilot, silence: Duration) -> io::Result<()> {
    let start = std::time::Instant::now();
    let mut last = start;
    let mut companion = None;
    let (mut encoder, mut decoder) = (Encoder::new(AUTOPILOT), Decoder::new(COMPANION));
    socket.set_read_timeout(Some(Duration::from_millis(STEP_MS)))?;
    while last.elapsed() < silence {
        match socket.recv_from(decoder.buffer()) {
            Ok((length, from)) => {
                (last, companion) = (std::time::Instant::now(), Some(from));
                decoder.start(length);
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
        let mut answers = Vec::new();
        let mut autopilot = lock(autopilot);
        let time_ms = start.elapsed().as_millis().try_into().unwrap_or(u64::MAX);
        autopilot.advance(time_ms, |message| answers.push(message.clone()));
        while let Some(message) = decoder.decode() {
            answers.extend(autopilot.receive(&message));
        }
        drop(autopilot);
        for answer in answers {
            if let Some(companion) = companion {
                // The companion may have ended.
                let _ = socket.send_to(encoder.encode(&answer), companion);
            }
        }
    }
    Ok(())
}

//! The dialog with an autopilot: setpoints, offboard mode, arming, the mission, landing.
//!
//! Modes are those of PX4. Before it accepts the offboard mode, it wants setpoints for a while, and
//! it leaves that mode by itself if they stop. The mode is requested once: a pilot who takes over
//! keeps the vehicle.

use std::ops::ControlFlow;

use mavlink::dialects::common::{
    COMMAND_LONG_DATA, HEARTBEAT_DATA, MavAutopilot, MavCmd, MavFrame, MavMessage, MavModeFlag, MavResult,
    MavState, MavSysStatusSensor, MavType, PositionTargetTypemask, SET_POSITION_TARGET_LOCAL_NED_DATA,
};
use punctual::{Duration, Instant};

use crate::link::AUTOPILOT;

/// Time between heartbeats.
pub const HEARTBEAT_PERIOD: Duration = Duration::from_secs(1);
/// Time without a heartbeat of the autopilot, after which the link is lost.
pub const LINK_TIMEOUT: Duration = Duration::from_millis(2_500);
/// Time for which setpoints precede the offboard mode.
pub const STREAM_TIME: Duration = Duration::from_secs(1);
/// Time after which a command without an answer is repeated.
pub const COMMAND_TIMEOUT: Duration = Duration::from_millis(500);
/// Transmissions of a command.
pub const MAX_ATTEMPTS: u8 = 5;
/// Time within which a command has an effect.
pub const EFFECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time within which the vehicle reaches a waypoint.
pub const WAYPOINT_TIMEOUT: Duration = Duration::from_secs(60);
/// Distance from a waypoint at which it is reached, in meters.
pub const RADIUS: f32 = 0.2;

/// Main mode of PX4 in which it follows setpoints.
pub const MODE_OFFBOARD: u8 = 6;

/// Returns PX4's main mode in a heartbeat.
#[must_use]
pub fn main_mode(custom_mode: u32) -> u8 {
    (custom_mode >> 16) as u8
}

/// A position relative to the origin of the autopilot: north, east and down, in meters.
pub type Position = [f32; 3];

/// Reason why a mission ends early.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum Failure {
    /// No heartbeat for [`LINK_TIMEOUT`]. The setpoints end, and the autopilot's failsafe acts.
    #[error("the link to the autopilot is lost")]
    LinkLost,
    /// The autopilot refused a command.
    #[error("the autopilot refused {0:?}: {1:?}")]
    Refused(MavCmd, MavResult),
    /// The autopilot did not acknowledge a command.
    #[error("the autopilot did not acknowledge {0:?}")]
    Unacknowledged(MavCmd),
    /// The autopilot left the offboard mode, as if a pilot takes over. The setpoints end.
    #[error("the autopilot is in main mode {0}, not offboard")]
    OtherMode(u8),
    /// The autopilot acknowledged a command, which had no effect for [`EFFECT_TIMEOUT`].
    #[error("{0:?} has no effect")]
    NoEffect(MavCmd),
    /// The vehicle did not reach this waypoint within [`WAYPOINT_TIMEOUT`]; it has been landed.
    #[error("waypoint {0} is not reached, the vehicle has been landed")]
    WaypointMissed(usize),
    /// The remote control is lost; the vehicle has been landed.
    #[error("the remote control is lost, the vehicle has been landed")]
    RemoteControlLost,
}

/// Progress of a mission.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Phase {
    /// Waits for a heartbeat and a position.
    Connecting,
    /// Sends setpoints.
    Streaming,
    /// Waits for the offboard mode.
    ChangingMode,
    /// Waits for the motors.
    Arming,
    /// Flies to this waypoint.
    Flying(usize),
    /// Waits until the autopilot has disarmed.
    Landing,
}

/// A command that has not been answered.
#[derive(Debug)]
struct Pending {
    command: MavCmd,
    parameters: [f32; 3],
    sent: Option<Instant>,
    attempts: u8,
}

/// The dialog.
#[derive(Debug)]
pub struct Offboard {
    waypoints: Vec<Position>,
    phase: Phase,
    /// Start of the phase.
    since: Instant,
    pending: Option<Pending>,
    last_sent_heartbeat: Option<Instant>,
    last_heartbeat: Option<Instant>,
    main_mode: u8,
    is_armed: bool,
    has_remote_control: bool,
    position: Option<Position>,
    /// Position at which the setpoints start.
    start: Position,
    failure: Option<Failure>,
}

impl Offboard {
    /// Returns the dialog of a mission: take off to the first waypoint, fly to the others, land.
    #[must_use]
    pub fn new(waypoints: Vec<Position>) -> Self {
        Self {
            waypoints,
            phase: Phase::Connecting,
            since: Instant::from_ticks(0),
            pending: None,
            last_sent_heartbeat: None,
            last_heartbeat: None,
            main_mode: 0,
            is_armed: false,
            has_remote_control: true,
            position: None,
            start: [0.0; 3],
            failure: None,
        }
    }

    /// Takes a message of the autopilot.
    pub fn receive(&mut self, now: Instant, message: &MavMessage) {
        match message {
            MavMessage::HEARTBEAT(heartbeat) => {
                self.last_heartbeat = Some(now);
                self.main_mode = main_mode(heartbeat.custom_mode);
                self.is_armed = heartbeat.base_mode.contains(MavModeFlag::MAV_MODE_FLAG_SAFETY_ARMED);
            }
            MavMessage::LOCAL_POSITION_NED(position) => {
                let position = [position.x, position.y, position.z];
                if position.iter().all(|value| value.is_finite()) {
                    self.position = Some(position);
                }
            }
            MavMessage::SYS_STATUS(status) => {
                let receiver = MavSysStatusSensor::MAV_SYS_STATUS_SENSOR_RC_RECEIVER;
                self.has_remote_control = !status.onboard_control_sensors_enabled.contains(receiver)
                    || status.onboard_control_sensors_health.contains(receiver);
            }
            MavMessage::COMMAND_ACK(ack)
                if self.pending.as_ref().is_some_and(|pending| pending.command == ack.command) =>
            {
                self.acknowledge(ack.command, ack.result);
            }
            _ => {}
        }
    }

    fn acknowledge(&mut self, command: MavCmd, result: MavResult) {
        match result {
            MavResult::MAV_RESULT_ACCEPTED => self.pending = None,
            // Repeated after the timeout.
            MavResult::MAV_RESULT_TEMPORARILY_REJECTED | MavResult::MAV_RESULT_IN_PROGRESS => {}
            _ => {
                self.pending = None;
                self.failure.get_or_insert(Failure::Refused(command, result));
            }
        }
    }

    fn command(&mut self, command: MavCmd, parameters: [f32; 3]) {
        self.pending = Some(Pending { command, parameters, sent: None, attempts: 0 });
    }

    fn enter(&mut self, now: Instant, phase: Phase) {
        (self.phase, self.since) = (phase, now);
    }

    fn change_phase(&mut self, now: Instant) {
        let is_acknowledged = self.pending.is_none();
        match self.phase {
            Phase::Connecting => {
                if let (Some(_), Some(position)) = (self.last_heartbeat, self.position) {
                    self.start = position;
                    self.enter(now, Phase::Streaming);
                }
            }
            Phase::Streaming if elapsed(now, self.since) >= STREAM_TIME => {
                self.enter(now, Phase::ChangingMode);
                let custom = MavModeFlag::MAV_MODE_FLAG_CUSTOM_MODE_ENABLED.bits();
                let parameters = [custom.into(), MODE_OFFBOARD.into(), 0.0];
                self.command(MavCmd::MAV_CMD_DO_SET_MODE, parameters);
            }
            Phase::ChangingMode if is_acknowledged && self.main_mode == MODE_OFFBOARD => {
                self.enter(now, Phase::Arming);
                self.command(MavCmd::MAV_CMD_COMPONENT_ARM_DISARM, [1.0, 0.0, 0.0]);
            }
            Phase::Arming if is_acknowledged && self.is_armed => self.enter(now, Phase::Flying(0)),
            Phase::Flying(index) if self.has_reached(index) => {
                if index + 1 == self.waypoints.len() {
                    self.land(now);
                } else {
                    self.enter(now, Phase::Flying(index + 1));
                }
            }
            _ => {}
        }
    }

    fn has_reached(&self, index: usize) -> bool {
        let (Some(position), Some(waypoint)) = (self.position, self.waypoints.get(index)) else {
            return false;
        };
        let square: f32 = position.iter().zip(waypoint).map(|(a, b)| (a - b) * (a - b)).sum();
        square <= RADIUS * RADIUS
    }

    fn land(&mut self, now: Instant) {
        self.enter(now, Phase::Landing);
        self.command(MavCmd::MAV_CMD_NAV_LAND, [0.0; 3]);
    }

    /// Records failures, and reacts to those after which the vehicle can be commanded.
    fn check(&mut self, now: Instant) {
        let is_controlled = matches!(self.phase, Phase::Arming | Phase::Flying(_));
        let age = |instant: Instant| elapsed(now, instant);
        let phase_age = age(self.since);
        if self.last_heartbeat.is_some_and(|last| age(last) > LINK_TIMEOUT) {
            self.failure = Some(Failure::LinkLost);
        } else if is_controlled && self.main_mode != MODE_OFFBOARD {
            self.failure = Some(Failure::OtherMode(self.main_mode));
        } else if is_controlled && !self.has_remote_control {
            self.failure = Some(Failure::RemoteControlLost);
            self.land(now);
        }
        match self.phase {
            Phase::ChangingMode if phase_age > EFFECT_TIMEOUT => {
                self.failure.get_or_insert(Failure::NoEffect(MavCmd::MAV_CMD_DO_SET_MODE));
            }
            Phase::Arming if phase_age > EFFECT_TIMEOUT => {
                self.failure.get_or_insert(Failure::NoEffect(MavCmd::MAV_CMD_COMPONENT_ARM_DISARM));
            }
            Phase::Flying(index) if phase_age > WAYPOINT_TIMEOUT => {
                self.failure.get_or_insert(Failure::WaypointMissed(index));
                self.land(now);
            }
            _ => {}
        }
    }

    /// Takes a step of the mission, and sends its messages.
    ///
    /// # Errors
    /// Breaks at the end of the mission, with the failure if there was one.
    pub fn step(
        &mut self,
        now: Instant,
        mut send: impl FnMut(&MavMessage),
    ) -> ControlFlow<Result<(), Failure>> {
        self.check(now);
        match self.failure {
            // The vehicle lands.
            Some(Failure::RemoteControlLost | Failure::WaypointMissed(_)) | None => {}
            Some(failure) => return ControlFlow::Break(Err(failure)),
        }
        let is_landed = self.phase == Phase::Landing && self.pending.is_none() && !self.is_armed;
        if is_landed {
            return ControlFlow::Break(self.failure.map_or(Ok(()), Err));
        }
        self.change_phase(now);
        if self.last_sent_heartbeat.is_none_or(|last| elapsed(now, last) >= HEARTBEAT_PERIOD) {
            self.last_sent_heartbeat = Some(now);
            send(&heartbeat());
        }
        let target = match self.phase {
            Phase::Connecting | Phase::Landing => None,
            Phase::Flying(index) => self.waypoints.get(index).copied(),
            _ => Some(self.start),
        };
        if let Some(target) = target {
            send(&setpoint(now, target));
        }
        if let Some(message) = self.next_command(now) {
            send(&message);
        }
        ControlFlow::Continue(())
    }

    /// Returns the command that is due.
    fn next_command(&mut self, now: Instant) -> Option<MavMessage> {
        let pending = self.pending.as_mut()?;
        if pending.sent.is_some_and(|sent| elapsed(now, sent) < COMMAND_TIMEOUT) {
            return None;
        }
        if pending.attempts == MAX_ATTEMPTS {
            self.failure = Some(Failure::Unacknowledged(pending.command));
            return None;
        }
        let [param1, param2, param3] = pending.parameters;
        let message = COMMAND_LONG_DATA {
            param1,
            param2,
            param3,
            command: pending.command,
            target_system: AUTOPILOT.system,
            target_component: AUTOPILOT.component,
            confirmation: pending.attempts,
            ..COMMAND_LONG_DATA::DEFAULT
        };
        pending.sent = Some(now);
        pending.attempts += 1;
        Some(MavMessage::COMMAND_LONG(message))
    }
}

/// Returns the time from `instant` to `now`.
fn elapsed(now: Instant, instant: Instant) -> Duration {
    now.checked_duration_since(instant).unwrap_or(Duration::from_ticks(0))
}

fn heartbeat() -> MavMessage {
    MavMessage::HEARTBEAT(HEARTBEAT_DATA {
        mavtype: MavType::MAV_TYPE_ONBOARD_CONTROLLER,
        autopilot: MavAutopilot::MAV_AUTOPILOT_INVALID,
        system_status: MavState::MAV_STATE_ACTIVE,
        mavlink_version: 3,
        ..HEARTBEAT_DATA::DEFAULT
    })
}

/// Returns the setpoint of a position; the autopilot chooses velocity, acceleration and yaw.
fn setpoint(now: Instant, [x, y, z]: Position) -> MavMessage {
    let position = PositionTargetTypemask::POSITION_TARGET_TYPEMASK_X_IGNORE
        | PositionTargetTypemask::POSITION_TARGET_TYPEMASK_Y_IGNORE
        | PositionTargetTypemask::POSITION_TARGET_TYPEMASK_Z_IGNORE
        | PositionTargetTypemask::POSITION_TARGET_TYPEMASK_FORCE_SET;
    MavMessage::SET_POSITION_TARGET_LOCAL_NED(SET_POSITION_TARGET_LOCAL_NED_DATA {
        // Milliseconds, which wrap after 49 days.
        time_boot_ms: now.duration_since_epoch().as_millis() as u32,
        x,
        y,
        z,
        type_mask: PositionTargetTypemask::all() - position,
        target_system: AUTOPILOT.system,
        target_component: AUTOPILOT.component,
        coordinate_frame: MavFrame::MAV_FRAME_LOCAL_NED,
        ..SET_POSITION_TARGET_LOCAL_NED_DATA::DEFAULT
    })
}

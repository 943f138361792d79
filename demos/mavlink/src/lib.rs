//! Offboard control of a drone by MAVLink: a crate to copy for autopilots.
//!
//! The task `guide` runs on the grid, every [`PERIOD`]. Each job takes the messages that have
//! arrived, at most [`MAX_MESSAGES`], and sends the setpoint of a position. Setpoints therefore
//! arrive at 50 Hz, also while the autopilot is silent, and a flood of datagrams does not delay
//! them. [`offboard`] is the dialog: heartbeats, the change of mode, arming, the mission, landing.
//!
//! A lost link, a refused command or another mode end the setpoints and the app: the autopilot's
//! own failsafe, or the pilot, has the vehicle. If the remote control is lost, the vehicle lands.
//!
//! [`simulated`] is an autopilot that leaves the offboard mode without setpoints for 0.5 s. This
//! crate has not been tested with a real one. Never arm with propellers before you have.

pub mod link;
pub mod offboard;
pub mod simulated;

use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

use offboard::Failure;

/// Period of setpoints.
pub const PERIOD: punctual::Duration = punctual::Duration::from_millis(20);
/// Messages that a job takes.
pub const MAX_MESSAGES: usize = 32;

/// Result of a mission.
#[derive(Debug, Default)]
pub struct Flight {
    /// Messages that the network did not take.
    pub unsent: AtomicU64,
    /// End of the mission.
    pub end: OnceLock<Result<(), Failure>>,
}

/// The companion.
#[punctual::app(main = false)]
pub mod app {
    use std::ops::ControlFlow;
    use std::sync::Arc;
    use std::sync::atomic::Ordering::Relaxed;

    use super::link::Link;
    use super::offboard::{Offboard, Position};
    use super::{Flight, MAX_MESSAGES, PERIOD};

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        link: Box<dyn Link>,
        offboard: Offboard,
        flight: Arc<Flight>,
    }

    #[init]
    fn init(
        _: init::Context,
        link: Box<dyn Link>,
        waypoints: Vec<Position>,
        flight: Arc<Flight>,
    ) -> (Shared, Local) {
        (Shared {}, Local { link, offboard: Offboard::new(waypoints), flight })
    }

    #[task(period = PERIOD, priority = 1, local = [link, offboard, flight])]
    fn guide(cx: guide::Context) {
        let guide::LocalResources { link, offboard, flight, .. } = cx.local;
        for _ in 0..MAX_MESSAGES {
            let Some(received) = link.receive() else { break };
            if let Some(message) = received {
                offboard.receive(cx.released, &message);
            }
        }
        let step = offboard.step(cx.released, |message| {
            if link.send(message).is_err() {
                flight.unsent.fetch_add(1, Relaxed);
            }
        });
        if let ControlFlow::Break(end) = step {
            let _ = flight.end.set(end);
            punctual::shutdown();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use mavlink::dialects::common::{MavCmd, MavResult};
    use punctual::Config;

    use super::*;
    use crate::offboard::Position;
    use crate::simulated::{
        Autopilot, Faults, MODE_AUTO, MODE_POSITION, SharedAutopilot, SimulatedLink, lock,
    };

    const WAYPOINTS: [Position; 2] = [[0.0, 0.0, -3.0], [2.0, -1.0, -3.0]];

    /// Flies in virtual time.
    fn fly(faults: Faults) -> (Result<(), Failure>, SharedAutopilot) {
        let autopilot = Arc::new(Mutex::new(Autopilot::new(faults)));
        let link = Box::new(SimulatedLink::new(Arc::clone(&autopilot)));
        let flight = Arc::<Flight>::default();
        let config = Config::new().virtual_time().until(Duration::from_secs(120));
        app::run(config, link, WAYPOINTS.to_vec(), Arc::clone(&flight)).unwrap();
        (*flight.end.get().expect("the mission ends within two minutes"), autopilot)
    }

    fn is_near(position: Position, wanted: Position) -> bool {
        position.iter().zip(wanted).all(|(value, wanted)| (value - wanted).abs() < 0.3)
    }

    #[test]
    fn flies_mission_and_lands() {
        let (end, autopilot) = fly(Faults::default());
        let autopilot = lock(&autopilot);
        assert_eq!((end, autopilot.is_armed(), autopilot.failsafes()), (Ok(()), false, 0));
        assert!(is_near(autopilot.position(), [2.0, -1.0, 0.0]), "{autopilot:?}");
        assert!((2.8..3.1).contains(&autopilot.highest()), "{autopilot:?}");
        assert_eq!(autopilot.longest_gap_ms(), PERIOD.as_nanos() / 1_000_000);
    }

    #[test]
    fn repeats_lost_commands() {
        let (end, autopilot) = fly(Faults { lost_commands: 4, ..Faults::default() });
        assert_eq!((end, lock(&autopilot).is_armed()), (Ok(()), false));
    }

    #[test]
    fn reports_commands_without_acknowledgment() {
        let (end, autopilot) = fly(Faults { lost_commands: u32::MAX, ..Faults::default() });
        assert_eq!(end, Err(Failure::Unacknowledged(MavCmd::MAV_CMD_DO_SET_MODE)));
        assert_eq!(lock(&autopilot).main_mode(), MODE_POSITION);
    }

    #[test]
    fn reports_refused_arming() {
        let (end, autopilot) = fly(Faults { refuses_arming: true, ..Faults::default() });
        let command = MavCmd::MAV_CMD_COMPONENT_ARM_DISARM;
        assert_eq!(end, Err(Failure::Refused(command, MavResult::MAV_RESULT_DENIED)));
        assert_eq!(lock(&autopilot).highest(), 0.0);
    }

    #[test]
    fn reports_commands_without_effect() {
        let (end, autopilot) = fly(Faults { ignores_commands: true, ..Faults::default() });
        assert_eq!(end, Err(Failure::NoEffect(MavCmd::MAV_CMD_DO_SET_MODE)));
        assert_eq!(lock(&autopilot).main_mode(), MODE_POSITION);
    }

    #[test]
    fn lands_if_waypoint_is_not_reached() {
        let (end, autopilot) = fly(Faults { is_weak: true, ..Faults::default() });
        let autopilot = lock(&autopilot);
        assert_eq!((end, autopilot.is_armed()), (Err(Failure::WaypointMissed(0)), false));
        assert_eq!((autopilot.main_mode(), autopilot.failsafes()), (MODE_AUTO, 0));
    }

    #[test]
    fn leaves_vehicle_to_failsafe_if_link_is_lost() {
        let (end, autopilot) = fly(Faults { link_lost_at: Some(4_000), ..Faults::default() });
        assert_eq!(end, Err(Failure::LinkLost));
        let mut autopilot = lock(&autopilot);
        assert!(autopilot.highest() > 0.5, "{autopilot:?}");
        autopilot.advance(20_000, |_| {});
        assert_eq!((autopilot.failsafes(), autopilot.is_armed()), (1, false));
    }

    #[test]
    fn leaves_vehicle_to_pilot_who_takes_over() {
        let (end, autopilot) = fly(Faults { takeover_at: Some(4_000), ..Faults::default() });
        assert_eq!(end, Err(Failure::OtherMode(MODE_POSITION)));
        let autopilot = lock(&autopilot);
        assert_eq!((autopilot.main_mode(), autopilot.is_armed()), (MODE_POSITION, true));
        // Until the next heartbeat reports the mode, after at most half a second.
        assert!(autopilot.commands_after_takeover() <= 26, "{autopilot:?}");
    }

    #[test]
    fn lands_if_remote_control_is_lost() {
        let (end, autopilot) = fly(Faults { remote_control_lost_at: Some(4_000), ..Faults::default() });
        assert_eq!(end, Err(Failure::RemoteControlLost));
        let autopilot = lock(&autopilot);
        assert_eq!((autopilot.main_mode(), autopilot.is_armed()), (MODE_AUTO, false));
        assert!(autopilot.highest() > 0.5 && autopilot.failsafes() == 0, "{autopilot:?}");
    }
}

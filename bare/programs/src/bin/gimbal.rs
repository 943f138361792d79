//! The controllers of the demo `gimbal` on the first core, and the gimbal that they control on the second, with a bus in between.
//!
//! Controllers, plant, encoders, frames and the client of the bus are the files that run on Linux, unchanged; so are the tasks, their
//! levels, periods and locks. What is not here is what takes memory or descriptors: recordings, topics and setpoints from files.
//!
//! emulator: -smp 4
//! thorough: raspi3b, raspi4b
#![no_std]
#![no_main]
#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "of the files of the demo not everything is used here"
)]

extern crate core as std;
extern crate punctual_bare;

pub use programs::float;

#[path = "../../../../demos/gimbal/src/axes.rs"]
mod axes;
#[path = "../../../../demos/gimbal/src/client.rs"]
mod client;
#[path = "../../../../demos/gimbal/src/control/mod.rs"]
mod control;
#[path = "../../../../demos/gimbal/src/device.rs"]
mod device;
#[path = "../../../../demos/gimbal/src/encoder.rs"]
mod encoder;
#[path = "../../../../demos/gimbal/src/frame.rs"]
mod frame;
#[path = "../../../../demos/gimbal/src/plant/mod.rs"]
mod plant;

#[punctual::app(report = "always", partitions = [control, gimbal])]
mod app {
    use core::hint;
    use core::sync::atomic::{AtomicU32, Ordering};

    use embedded_hal::spi::{ErrorKind, ErrorType, Operation, SpiDevice};
    use punctual::Instant;
    use punctual::prelude::*;
    use punctual_bare::println;

    use crate::axes::Axes;
    use crate::client::Gimbal;
    use crate::control::{CurrentController, PositionController};
    use crate::device::SimulatedGimbal;
    use crate::encoder::RESOLUTION_RAD;
    use crate::frame::Frame;
    use crate::plant::{GIMBAL, SUPPLY_V};

    /// Position loops run once in so many samples.
    const SAMPLES_PER_POSITION: u32 = 10;

    /// The position loops have so many periods: a second.
    const PERIODS: u32 = 1_000;

    /// From which period on (that is, ms) which angles are wanted, in rad.
    const SETPOINTS: [(u32, f64, f64); 3] = [(0, 0.0, 0.0), (50, 0.5, 0.0), (400, 0.5, -0.2)];

    /// The gimbal's answer to the last transfer, in words.
    static ANSWER: [AtomicU32; 4] = [const { AtomicU32::new(0) }; 4];
    /// How many transfers have been answered.
    static ANSWERED: AtomicU32 = AtomicU32::new(0);

    /// The controller's end of the bus: a transfer lasts until the other core has answered.
    pub struct Bus {
        transfers: u32,
    }

    impl ErrorType for Bus {
        type Error = ErrorKind;
    }

    impl SpiDevice for Bus {
        fn transaction(&mut self, operations: &mut [Operation<'_, u8>]) -> Result<(), ErrorKind> {
            let [Operation::Transfer(read, write)] = operations else { return Err(ErrorKind::Other) };
            let command: Frame = (*write).try_into().map_err(|_| ErrorKind::FrameFormat)?;
            let answer: &mut Frame = (*read).try_into().map_err(|_| ErrorKind::FrameFormat)?;
            transfer::spawn(command).map_err(|_| ErrorKind::Overrun)?;
            self.transfers += 1;
            // Acquire: pairs with the release of the answer.
            while ANSWERED.load(Ordering::Acquire) != self.transfers {
                hint::spin_loop();
            }
            for (bytes, word) in answer.chunks_exact_mut(4).zip(&ANSWER) {
                bytes.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
            }
            Ok(())
        }
    }

    fn clock() -> u64 {
        punctual::now().as_ticks()
    }

    #[shared]
    struct Shared {
        /// Written by `current`, sent by the next `sample`.
        voltages_v: Axes<f64>,
        /// Written by `position`, followed by `current`.
        current_setpoints_a: Axes<f64>,
        /// Written by `setpoint`, followed by `position`.
        setpoints_rad: Axes<f64>,
    }

    #[local]
    struct Local {
        gimbal: Gimbal<Bus>,
        simulated: SimulatedGimbal<fn() -> u64>,
        position_loops: Axes<PositionController>,
        current_loops: Axes<CurrentController>,
        /// What was measured last, and how far that is from what is wanted.
        last_rad: Axes<f64>,
        error_rad: Axes<f64>,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        let position_loops = Axes::<PositionController>::for_axes(GIMBAL);
        let current_loops = Axes::<CurrentController>::for_axes(GIMBAL, SUPPLY_V);
        let shared = Shared {
            voltages_v: Axes::both(0.0),
            current_setpoints_a: Axes::both(0.0),
            setpoints_rad: Axes::both(0.0),
        };
        let local = Local {
            gimbal: Gimbal::new(Bus { transfers: 0 }),
            simulated: SimulatedGimbal::new(GIMBAL, SUPPLY_V, clock),
            position_loops,
            current_loops,
            last_rad: Axes::both(0.0),
            error_rad: Axes::both(0.0),
        };
        (shared, local)
    }

    /// The gimbal: answers with what its sensors show, and applies the command.
    #[task(priority = 1, core = "gimbal", local = [simulated])]
    fn transfer(cx: transfer::Context, mut frame: Frame) {
        // It takes frames of this length.
        if cx.local.simulated.transfer_in_place(&mut frame).is_err() {
            return;
        }
        for (bytes, word) in frame.chunks_exact(4).zip(&ANSWER) {
            word.store(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]), Ordering::Relaxed);
        }
        ANSWERED.fetch_add(1, Ordering::Release);
    }

    #[task(
        priority = 3,
        core = "control",
        period = 100.micros(),
        shared = [voltages_v, setpoints_rad],
        local = [gimbal, last_rad, error_rad, samples: u32 = 0]
    )]
    fn sample(mut cx: sample::Context) {
        let voltages_v = cx.shared.voltages_v.lock(|voltages_v| *voltages_v);
        let turn = *cx.local.samples;
        *cx.local.samples += 1;
        let Ok(feedback) = cx.local.gimbal.exchange(voltages_v) else { return };
        if !turn.is_multiple_of(SAMPLES_PER_POSITION) {
            // A full queue means that the loops are behind; the next sample brings newer values.
            let _ = current::spawn(feedback.currents_a());
            return;
        }
        let measured_rad = feedback.angles_rad();
        let setpoints_rad = cx.shared.setpoints_rad.lock(|setpoints_rad| *setpoints_rad);
        *cx.local.error_rad = setpoints_rad.zip(measured_rad).map(|(wanted, measured)| measured - wanted);
        *cx.local.last_rad = measured_rad;
        if turn == SAMPLES_PER_POSITION * PERIODS {
            punctual::shutdown();
        }
        let _ = position::spawn(measured_rad, feedback.currents_a());
    }

    #[task(
        priority = 2,
        core = "control",
        shared = [setpoints_rad, current_setpoints_a],
        local = [position_loops],
        deadline = 1.millis(),
        min_interval = 800.micros(),
    )]
    fn position(mut cx: position::Context, measured_rad: Axes<f64>, currents_a: Axes<f64>) {
        let setpoints_rad = cx.shared.setpoints_rad.lock(|setpoints_rad| *setpoints_rad);
        let wanted_a = cx.local.position_loops.update(setpoints_rad, measured_rad);
        cx.shared.current_setpoints_a.lock(|current_setpoints_a| *current_setpoints_a = wanted_a);
        let _ = current::spawn(currents_a);
    }

    #[task(
        priority = 4,
        core = "control",
        shared = [current_setpoints_a, voltages_v],
        local = [current_loops],
        deadline = 100.micros()
    )]
    fn current(mut cx: current::Context, measured_a: Axes<f64>) {
        let wanted_a = cx.shared.current_setpoints_a.lock(|current_setpoints_a| *current_setpoints_a);
        let volts = cx.local.current_loops.update(wanted_a, measured_a);
        cx.shared.voltages_v.lock(|voltages_v| *voltages_v = volts);
    }

    #[task(
        priority = 1,
        core = "control",
        period = 1.millis(),
        shared = [setpoints_rad],
        local = [start: Option<Instant> = None]
    )]
    fn setpoint(mut cx: setpoint::Context) {
        let start = *cx.local.start.get_or_insert(cx.released);
        // Of the coming millisecond.
        let coming = (cx.released - start).as_ticks() / 1_000_000 + 1;
        let wanted = SETPOINTS.iter().rev().find(|(from, ..)| u64::from(*from) <= coming);
        let Some(&(_, pan, tilt)) = wanted else { return };
        cx.shared.setpoints_rad.lock(|setpoints_rad| *setpoints_rad = Axes::new(pan, tilt));
    }

    #[shutdown(local = [gimbal, last_rad, error_rad])]
    fn shutdown(cx: shutdown::Context) {
        let link = cx.local.gimbal.counters();
        println!("exchanges: {}, of which failed: {}", link.exchanges, link.bus_errors);
        println!("frames lost or damaged: {}", link.lost_feedback + link.lost_commands + link.crc_errors);
        let last_rad = *cx.local.last_rad;
        for (axis, angle_rad, error_rad) in
            [("pan", last_rad.pan, cx.local.error_rad.pan), ("tilt", last_rad.tilt, cx.local.error_rad.tilt)]
        {
            let counts = (error_rad.abs() / RESOLUTION_RAD + 0.5) as u32;
            println!("{axis} at {angle_rad:.2} rad, from its setpoint in counts of its encoder: {counts}");
        }
    }
}

//! The controllers of the demo `gimbal` on a CPU that Linux gave up; setpoints and the recording
//! are on Linux.
//!
//!     punctual isolate run --offline --cpus 3 -- gimbal gimbal_ui [SECONDS [FILE.csv]]
//!
//! Controllers, encoders, frames and the client of the bus are the files of the demo, unchanged.
//! The gimbal itself is simulated at the other end of the bus, which here is a call.
#![no_std]
#![no_main]
#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "of the files of the demo not everything is used here"
)]

extern crate core as std;

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
#[path = "../../../programs/src/float.rs"]
mod float;
#[path = "../../../../demos/gimbal/src/frame.rs"]
mod frame;
#[path = "../../../../demos/gimbal/src/plant/mod.rs"]
mod plant;

#[path = "../../../../lab/programs/examples/shared/gimbal.rs"]
mod link;

/// The controller's end of the bus.
mod bus {
    use embedded_hal::spi::{ErrorKind, ErrorType, Operation, SpiDevice};

    use crate::device::SimulatedGimbal;
    use crate::frame::Frame;

    /// A transfer takes as long as simulating the time since the previous transfer.
    pub struct Bus(pub SimulatedGimbal<fn() -> u64>);

    impl ErrorType for Bus {
        type Error = ErrorKind;
    }

    impl SpiDevice for Bus {
        fn transaction(&mut self, operations: &mut [Operation<'_, u8>]) -> Result<(), ErrorKind> {
            let [Operation::Transfer(read, write)] = operations else { return Err(ErrorKind::Other) };
            let mut frame: Frame = (*write).try_into().map_err(|_| ErrorKind::FrameFormat)?;
            self.0.transfer_in_place(&mut frame).map_err(|_| ErrorKind::FrameFormat)?;
            let answer: &mut Frame = (*read).try_into().map_err(|_| ErrorKind::FrameFormat)?;
            *answer = frame;
            Ok(())
        }
    }
}

#[punctual::app(report = "always")]
mod app {
    use punctual::prelude::*;
    use punctual::sync::shared::{LatestReader, RingProducer};
    use punctual_bare::{amp, println};

    use crate::{
        axes::Axes,
        bus::Bus,
        client::Gimbal,
        control::{CurrentController, PositionController},
        device::SimulatedGimbal,
        link::{RECORD, Record, Setpoints},
        plant::{GIMBAL, SUPPLY_V},
    };

    /// Samples per run of the position loops.
    const SAMPLES_PER_POSITION: u32 = 10;

    #[shared]
    struct Shared {
        /// Written by `current`, sent by the next `sample`.
        voltages_v: Axes<f64>,
        /// Written by `position`, followed by `current`.
        current_setpoints_a: Axes<f64>,
    }

    #[local]
    struct Local {
        gimbal: Gimbal<Bus>,
        position_loops: Axes<PositionController>,
        current_loops: Axes<CurrentController>,
        setpoints: LatestReader<'static, [f64; 2]>,
        record: RingProducer<'static, [f64; 5], RECORD>,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        let clock: fn() -> u64 = || punctual::now().as_ticks();
        let mut memory = amp::arena().expect("nothing else places structures");
        let room = "the memory has room for both";
        let setpoints = memory.init::<Setpoints>([0.0; 2]).expect(room);
        let record = memory.init::<Record>(()).expect(room);
        let shared = Shared { voltages_v: Axes::both(0.0), current_setpoints_a: Axes::both(0.0) };
        let local = Local {
            gimbal: Gimbal::new(Bus(SimulatedGimbal::new(GIMBAL, SUPPLY_V, clock))),
            position_loops: Axes::<PositionController>::for_axes(GIMBAL),
            current_loops: Axes::<CurrentController>::for_axes(GIMBAL, SUPPLY_V),
            setpoints: setpoints.reader().expect("nothing else reads them"),
            record: record.producer().expect("nothing else writes it"),
        };
        (shared, local)
    }

    #[task(
        priority = 3,
        period = 100.micros(),
        shared = [voltages_v],
        local = [gimbal, turn: u32 = 0]
    )]
    fn sample(mut cx: sample::Context) {
        let voltages_v = cx.shared.voltages_v.lock(|voltages_v| *voltages_v);
        let Ok(feedback) = cx.local.gimbal.exchange(voltages_v) else { return };
        // A full queue means that the loops are behind; the next sample brings newer values.
        let _ = match cx.local.turn.is_multiple_of(SAMPLES_PER_POSITION) {
            true => position::spawn(feedback.angles_rad(), feedback.currents_a()).is_ok(),
            false => current::spawn(feedback.currents_a()).is_ok(),
        };
        *cx.local.turn += 1;
    }

    #[task(
        priority = 2,
        shared = [current_setpoints_a],
        local = [position_loops, setpoints, record],
        deadline = 1.millis(),
    )]
    fn position(mut cx: position::Context, measured_rad: Axes<f64>, currents_a: Axes<f64>) {
        let [pan, tilt] = cx.local.setpoints.read().value;
        let wanted_a = cx.local.position_loops.update(Axes::new(pan, tilt), measured_rad);
        cx.shared.current_setpoints_a.lock(|current_setpoints_a| *current_setpoints_a = wanted_a);
        let _ = current::spawn(currents_a);
        let now_s = punctual::now().as_ticks() as f64 * 1e-9;
        // A recording that is behind has a gap.
        let _ = cx.local.record.push([now_s, measured_rad.pan, measured_rad.tilt, pan, tilt]);
    }

    #[task(
        priority = 4,
        shared = [current_setpoints_a, voltages_v],
        local = [current_loops],
        deadline = 100.micros()
    )]
    fn current(mut cx: current::Context, measured_a: Axes<f64>) {
        let wanted_a = cx.shared.current_setpoints_a.lock(|current_setpoints_a| *current_setpoints_a);
        let volts = cx.local.current_loops.update(wanted_a, measured_a);
        cx.shared.voltages_v.lock(|voltages_v| *voltages_v = volts);
    }

    /// Without voltage the axes stay where friction holds them, which is their safe state.
    #[shutdown(local = [gimbal])]
    fn shutdown(cx: shutdown::Context) {
        let off = cx.local.gimbal.exchange(Axes::both(0.0)).is_ok();
        let link = cx.local.gimbal.counters();
        println!("control: {} exchanges, of which failed: {}; off: {off}", link.exchanges, link.bus_errors);
    }
}

//! The demo `gimbal` in two halves: the controllers on a CPU that Linux gave up, setpoints and the recording on Linux.
//!
//!     punctual isolate run --offline --cpu 3 -- CONTROL UI [SECONDS [FILE.csv]]
//!
//! Controllers, encoders, frames and the client of the bus are the files of the demo, unchanged. The gimbal itself is simulated at the
//! other end of the bus, which here is a call.
#![cfg_attr(target_os = "none", no_std, no_main)]
#![cfg_attr(
    target_os = "none",
    allow(
        dead_code,
        unreachable_pub,
        unused_imports,
        reason = "of the files of the demo not everything is used here"
    )
)]

#[cfg(target_os = "none")]
extern crate core as std;

#[cfg(target_os = "none")]
#[path = "../../../../demos/gimbal/src/axes.rs"]
mod axes;
#[cfg(target_os = "none")]
#[path = "../../../../demos/gimbal/src/client.rs"]
mod client;
#[cfg(target_os = "none")]
#[path = "../../../../demos/gimbal/src/control/mod.rs"]
mod control;
#[cfg(target_os = "none")]
#[path = "../../../../demos/gimbal/src/device.rs"]
mod device;
#[cfg(target_os = "none")]
#[path = "../../../../demos/gimbal/src/encoder.rs"]
mod encoder;
#[cfg(target_os = "none")]
#[path = "../../../programs/src/float.rs"]
mod float;
#[cfg(target_os = "none")]
#[path = "../../../../demos/gimbal/src/frame.rs"]
mod frame;
#[cfg(target_os = "none")]
#[path = "../../../../demos/gimbal/src/plant/mod.rs"]
mod plant;

/// The controller's end of the bus.
#[cfg(target_os = "none")]
mod bus {
    use embedded_hal::spi::{ErrorKind, ErrorType, Operation, SpiDevice};

    use crate::device::SimulatedGimbal;
    use crate::frame::Frame;

    /// Lasts as long as the simulation of what has passed since the last transfer takes.
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

#[punctual::app(report = "always", partitions = [control(offline), ui])]
mod app {
    #[cfg(target_os = "linux")]
    use std::fs::File;
    #[cfg(target_os = "linux")]
    use std::io::{BufWriter, Write as _};

    #[cfg(target_os = "none")]
    use punctual::prelude::*;
    use punctual::sync::shared::{Latest, Ring};
    #[cfg(target_os = "none")]
    use punctual::sync::shared::{LatestReader, RingProducer};
    #[cfg(target_os = "linux")]
    use punctual::sync::shared::{LatestWriter, RingConsumer};
    #[cfg(target_os = "none")]
    use punctual_bare::println;

    #[cfg(target_os = "none")]
    use crate::{
        axes::Axes,
        bus::Bus,
        client::Gimbal,
        control::{CurrentController, PositionController},
        device::SimulatedGimbal,
        plant::{GIMBAL, SUPPLY_V},
    };

    /// Wanted angles in rad: pan and tilt.
    #[both]
    static SETPOINTS: Latest<[f64; 2]> = Latest::new([0.0; 2]);

    /// Of each period of the position loops: s since the start, angles and setpoints in rad.
    #[both]
    static RECORD: Ring<[f64; 5], 1024> = Ring::new();

    /// Position loops run once in so many samples.
    #[cfg(target_os = "none")]
    const SAMPLES_PER_POSITION: u32 = 10;

    /// From which time on (ms) which angles are wanted, in rad.
    #[cfg(target_os = "linux")]
    const WANTED: [(u32, [f64; 2]); 3] = [(0, [0.0, 0.0]), (50, [0.5, 0.0]), (400, [0.5, -0.2])];

    #[shared(core = control)]
    struct Shared {
        /// Written by `current`, sent by the next `sample`.
        voltages_v: Axes<f64>,
        /// Written by `position`, followed by `current`.
        current_setpoints_a: Axes<f64>,
    }

    #[local(core = control)]
    struct Local {
        gimbal: Gimbal<Bus>,
        position_loops: Axes<PositionController>,
        current_loops: Axes<CurrentController>,
        setpoints: LatestReader<'static, [f64; 2]>,
        record: RingProducer<'static, [f64; 5], 1024>,
    }

    #[init(core = control)]
    fn init(_: init::Context) -> (Shared, Local) {
        let clock: fn() -> u64 = || punctual::now().as_ticks();
        let shared = Shared { voltages_v: Axes::both(0.0), current_setpoints_a: Axes::both(0.0) };
        let local = Local {
            gimbal: Gimbal::new(Bus(SimulatedGimbal::new(GIMBAL, SUPPLY_V, clock))),
            position_loops: Axes::<PositionController>::for_axes(GIMBAL),
            current_loops: Axes::<CurrentController>::for_axes(GIMBAL, SUPPLY_V),
            setpoints: SETPOINTS.reader().expect("nobody else reads them"),
            record: RECORD.producer().expect("nobody else writes it"),
        };
        (shared, local)
    }

    #[task(
        core = control,
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
        core = control,
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
        core = control,
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
    #[shutdown(core = control, local = [gimbal])]
    fn shutdown(cx: shutdown::Context) {
        let off = cx.local.gimbal.exchange(Axes::both(0.0)).is_ok();
        let link = cx.local.gimbal.counters();
        println!("control: {} exchanges, of which failed: {}; off: {off}", link.exchanges, link.bus_errors);
    }

    #[shared(core = ui)]
    struct Shared {}

    #[local(core = ui)]
    struct Local {
        setpoints: LatestWriter<'static, [f64; 2]>,
        record: RingConsumer<'static, [f64; 5], 1024>,
        last: [f64; 5],
        recorded: u32,
        periods: u32,
        file: Option<BufWriter<File>>,
    }

    #[init(core = ui)]
    fn init(_: init::Context) -> (Shared, Local) {
        let mut arguments = std::env::args().skip(1);
        let seconds: u32 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1);
        let file =
            arguments.next().map(|path| BufWriter::new(File::create(path).expect("it can be written")));
        let local = Local {
            setpoints: SETPOINTS.writer().expect("nobody else sets them"),
            record: RECORD.consumer().expect("nobody else records"),
            last: [0.0; 5],
            recorded: 0,
            periods: seconds * 100,
            file,
        };
        (Shared {}, local)
    }

    #[task(core = ui, priority = 2, period = 10.millis(), local = [setpoints, periods, turn: u32 = 0])]
    fn setpoint(cx: setpoint::Context) {
        let turn = *cx.local.turn;
        if let Some((_, wanted)) = WANTED.iter().rev().find(|(from, _)| *from <= 10 * turn) {
            cx.local.setpoints.write(*wanted);
        }
        *cx.local.turn += 1;
        if turn == *cx.local.periods {
            punctual::shutdown();
        }
    }

    #[task(core = ui, priority = 1, period = 20.millis(), local = [record, last, recorded, file])]
    fn recording(cx: recording::Context) {
        while let Some(line) = cx.local.record.pop() {
            (*cx.local.last, *cx.local.recorded) = (line, *cx.local.recorded + 1);
            if let Some(file) = cx.local.file {
                let [time_s, pan, tilt, wanted_pan, wanted_tilt] = line;
                // The recording ends where the disk does.
                let _ = writeln!(file, "{time_s},{pan},{tilt},{wanted_pan},{wanted_tilt}");
            }
        }
    }

    #[shutdown(core = ui, local = [last, recorded])]
    fn shutdown(cx: shutdown::Context) {
        let [_, pan, tilt, wanted_pan, wanted_tilt] = *cx.local.last;
        println!("ui: {} periods recorded", cx.local.recorded);
        println!("ui: pan at {pan:.3} rad of {wanted_pan:.3}, tilt at {tilt:.3} rad of {wanted_tilt:.3}");
    }
}

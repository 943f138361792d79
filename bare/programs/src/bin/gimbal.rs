//! The controller of the demo `gimbal`, and on the second core the gimbal that it controls,
//! connected by a bus.
//!
//! The controller's app is the same file as on Linux, as are the control loops, the plant, the
//! encoders, the frames, the client of the bus, the setpoints and the recording. This program omits
//! the parts that need file descriptors: topics, tuning, and setpoints by hand or from files.
//!
//! emulator: -smp 4
//! allocates: its recording
//! virtual-time: ends by the clock
//! sample: one board
#![no_std]
#![no_main]
#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "of the files of the demo not everything is used here"
)]

extern crate alloc;
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
#[path = "../../../../demos/gimbal/src/log.rs"]
mod log;
#[path = "../../../../demos/gimbal/src/plant/mod.rs"]
mod plant;
#[path = "../../../../demos/gimbal/src/setpoints/timeline.rs"]
mod setpoints;
#[path = "../../../../demos/gimbal/src/controller/tasks.rs"]
mod tasks;

/// Duration of the control, in s.
const SECONDS: f64 = 1.0;

/// Start times in s, with the setpoints of both angles in rad.
const SETPOINTS: [(f64, f64, f64); 3] = [(0.0, 0.0, 0.0), (0.05, 0.5, 0.0), (0.4, 0.5, -0.2)];

mod bus {
    use core::cell::UnsafeCell;
    use core::hint;
    use core::sync::atomic::{AtomicU32, Ordering};

    use embedded_hal::spi::{ErrorKind, ErrorType, Operation, SpiDevice};
    use punctual_bare::cores;

    use crate::axes::Axes;
    use crate::device::SimulatedGimbal;
    use crate::frame::Frame;
    use crate::plant::{GIMBAL, SUPPLY_V};

    /// The core that simulates the gimbal.
    const CORE: u32 = 1;

    /// The transfer in progress: first the command, then the answer.
    static FRAME: [AtomicU32; 4] = [const { AtomicU32::new(0) }; 4];
    /// Number of answered transfers.
    static ANSWERED: AtomicU32 = AtomicU32::new(0);

    type Device = SimulatedGimbal<fn() -> u64>;

    struct Simulated(UnsafeCell<Option<Device>>);

    // SAFETY: only `answer` uses it. One core runs `answer`, one call after the other.
    unsafe impl Sync for Simulated {}

    static SIMULATED: Simulated = Simulated(UnsafeCell::new(None));

    fn load() -> Frame {
        let mut frame = Frame::default();
        for (bytes, word) in frame.chunks_exact_mut(4).zip(&FRAME) {
            bytes.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
        }
        frame
    }

    fn store(frame: &Frame) {
        for (bytes, word) in frame.chunks_exact(4).zip(&FRAME) {
            word.store(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]), Ordering::Relaxed);
        }
    }

    fn clock() -> u64 {
        punctual::now().as_ticks()
    }

    /// Plays the gimbal: answers with the values of its sensors and applies the command.
    fn answer() {
        // SAFETY: no other call is in progress, because the core runs one at a time, with
        // interrupts masked.
        let simulated = unsafe { &mut *SIMULATED.0.get() };
        let simulated =
            simulated.get_or_insert_with(|| SimulatedGimbal::new(GIMBAL, SUPPLY_V, clock as fn() -> u64));
        let mut frame = load();
        // Frames of this length are accepted.
        if simulated.transfer_in_place(&mut frame).is_ok() {
            store(&frame);
        }
        // Release: publishes the answer stored above.
        ANSWERED.fetch_add(1, Ordering::Release);
    }

    /// The controller's end of the bus. A transfer lasts until the other core has answered.
    #[derive(Debug, Default)]
    pub struct Bus {
        transfers: u32,
    }

    impl Bus {
        /// Returns `None`: values that no sensor measures stay on the other core.
        pub fn true_rad(&self) -> Option<Axes<f64>> {
            None
        }
    }

    impl ErrorType for Bus {
        type Error = ErrorKind;
    }

    impl SpiDevice for Bus {
        fn transaction(&mut self, operations: &mut [Operation<'_, u8>]) -> Result<(), ErrorKind> {
            let [Operation::Transfer(read, write)] = operations else { return Err(ErrorKind::Other) };
            let answered: &mut Frame = (*read).try_into().map_err(|_| ErrorKind::FrameFormat)?;
            store((*write).try_into().map_err(|_| ErrorKind::FrameFormat)?);
            // The other core sees all stores that precede the start.
            if !cores::start(CORE, answer) {
                return Err(ErrorKind::Other);
            }
            self.transfers += 1;
            // Acquire: pairs with the release of the answer.
            while ANSWERED.load(Ordering::Acquire) != self.transfers {
                hint::spin_loop();
            }
            *answered = load();
            Ok(())
        }
    }
}

/// The environment of the tasks on this board.
mod controller {
    use core::fmt;

    use punctual_bare::println;

    use crate::axes::Axes;
    use crate::encoder::RESOLUTION_RAD;
    pub use crate::tasks::{Record, Recording, Setpoints};

    /// Connections to topics, which do not exist here.
    #[derive(Debug)]
    pub enum Links {}

    /// Prints a summary of the record.
    #[derive(Debug)]
    pub struct Records;

    impl Records {
        pub fn hand_over(&self, record: Record) {
            let link = record.link;
            println!("exchanges: {}, of which failed: {}", link.exchanges, link.bus_errors);
            println!("frames lost or damaged: {}", link.lost_feedback + link.lost_commands + link.crc_errors);
            let samples = record.recorder.samples();
            println!("samples recorded: {}", samples.len());
            for at_ms in [399, 999] {
                let Some(sample) = samples.iter().find(|sample| sample.t_ns >= at_ms * 1_000_000) else {
                    continue;
                };
                let error =
                    sample.setpoint_rad.zip(sample.measured_rad).map(|(wanted, measured)| wanted - measured);
                println!(
                    "after {at_ms} ms: {}, from its setpoint in counts of its encoders: {}, {}",
                    Angles(sample.measured_rad),
                    (error.pan.abs() / RESOLUTION_RAD + 0.5) as u32,
                    (error.tilt.abs() / RESOLUTION_RAD + 0.5) as u32,
                );
            }
        }
    }

    struct Angles(Axes<f64>);

    impl fmt::Display for Angles {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "pan at {:.2} rad, tilt at {:.2} rad", self.0.pan, self.0.tilt)
        }
    }
}

punctual_bare::entry!(main);

fn main() -> ! {
    use client::Gimbal;
    use punctual::{Config, Duration};
    use setpoints::Timeline;

    let periods = (SECONDS * 1e9) as u64 / control::POSITION_PERIOD_NS + 2;
    let recording = tasks::Recording { recorder: log::Recorder::with_capacity(periods as usize), every: 1 };
    let mut timeline = Timeline::new();
    for (from_s, pan, tilt) in SETPOINTS {
        timeline.push(from_s, axes::Axes::new(pan, tilt));
    }
    let setpoints = tasks::Setpoints::Timeline(timeline);
    let config = Config::new().until(Duration::from_nanos((SECONDS * 1e9) as u64));
    let gimbal = Gimbal::new(bus::Bus::default());
    let code = match tasks::app::run(config, gimbal, setpoints, recording, None, controller::Records) {
        Ok(report) => {
            for task in &report.tasks {
                let recorded = task.response.buckets.iter().map(|bucket| bucket.1).sum::<u64>();
                assert_eq!(recorded, task.jobs, "the histogram of {} has every job", task.name);
            }
            punctual_bare::print!("{report}");
            report.exit_code()
        }
        Err(error) => {
            punctual_bare::println!("{error}");
            2
        }
    };
    punctual_bare::exit(code.into())
}

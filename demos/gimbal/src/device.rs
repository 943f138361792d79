//! The simulated gimbal as a device on an SPI bus.
//!
//! It implements the same `embedded-hal` trait as a real bus, so the rest of the program does not
//! distinguish the two, and replacing it by a real gimbal changes one line.

use crate::axes::Axes;
use crate::encoder;
// A bare board has no `std` with these functions: `bare/programs` provides them.
#[cfg(target_os = "none")]
use crate::float::Float as _;
use crate::frame::{self, FRAME_LEN, Feedback, Frame, Status};
use crate::plant::{AngleRange, AxisParameters, AxisState, Plant};
use embedded_hal::spi::{self, ErrorKind, ErrorType, Operation, SpiDevice};

/// A gimbal that exists only in the program, in the time of `clock`.
///
/// Each transfer simulates up to the clock's time with the voltages of the previous command,
/// answers with the sensor values at that time, and only then applies the received command. It
/// neither allocates nor blocks.
#[derive(Debug)]
pub struct SimulatedGimbal<C> {
    plant: Plant,
    ranges: Axes<AngleRange>,
    clock: C,
    sequence: u16,
    accepted: u16,
    status: Status,
}

impl<C: FnMut() -> u64> SimulatedGimbal<C> {
    /// Creates a gimbal at rest; `clock` returns nanoseconds from any fixed origin. The first
    /// transfer switches the gimbal on.
    pub fn new(parameters: Axes<AxisParameters>, supply_v: f64, clock: C) -> Self {
        Self {
            plant: Plant::new(parameters, supply_v),
            ranges: parameters.map(|axis| axis.range),
            clock,
            sequence: 0,
            accepted: 0,
            status: Status::default(),
        }
    }

    /// Returns the state that no sensor shows, as of the last transfer: for records and tests, not
    /// for control.
    pub fn true_state(&self) -> Axes<AxisState> {
        self.plant.state()
    }

    /// Simulates up to the clock's time, so that the next transfer after a pause takes no longer
    /// than others.
    pub fn catch_up(&mut self) {
        // If more than a second is missing, later calls make up for the rest.
        let _ = self.plant.advance_to((self.clock)());
    }

    fn exchange(&mut self, command: &Frame) -> Frame {
        let now_ns = (self.clock)();
        self.status.set(Status::BEHIND, self.plant.advance_to(now_ns).is_err());
        let answer = frame::encode_feedback(&self.sample());
        self.sequence = self.sequence.wrapping_add(1);

        let command = frame::decode_command(command);
        self.status.set(Status::COMMAND_REJECTED, command.is_err());
        if let Ok(command) = command {
            self.accepted = command.sequence;
            let limited = self.plant.set_voltages(command.voltages_v.map(f64::from));
            self.status.set(Status::SUPPLY_LIMITED, limited);
        }
        answer
    }

    fn sample(&mut self) -> Feedback {
        let state = self.plant.state();
        let at_stop =
            state.zip(self.ranges).map(|(s, r)| s.angle_rad <= r.min_rad || s.angle_rad >= r.max_rad);
        self.status.set(Status::AT_STOP, at_stop.pan || at_stop.tilt);
        Feedback {
            sequence: self.sequence,
            accepted: self.accepted,
            counts: state.map(|s| encoder::count(s.angle_rad)),
            // The conversion saturates like the converter that it models.
            currents_ma: state.map(|s| (s.current_a * 1e3).round() as i16),
            status: self.status,
        }
    }
}

/// The reason why the simulated device rejected a transaction, which then had no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// The transaction did not clock exactly one frame in each direction.
    #[error(
        "a transaction must be one full-duplex transfer of {FRAME_LEN} bytes, not {written} out and {read} in"
    )]
    Length {
        /// Bytes from the controller.
        written: usize,
        /// Bytes to the controller.
        read: usize,
    },
    /// The transaction was not one single full-duplex transfer.
    #[error("a transaction must be a single full-duplex transfer")]
    NotFullDuplex,
}

impl spi::Error for DeviceError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Length { .. } => ErrorKind::FrameFormat,
            Self::NotFullDuplex => ErrorKind::Other,
        }
    }
}

impl<C> ErrorType for SimulatedGimbal<C> {
    type Error = DeviceError;
}

impl<C: FnMut() -> u64> SpiDevice for SimulatedGimbal<C> {
    fn transaction(&mut self, operations: &mut [Operation<'_, u8>]) -> Result<(), DeviceError> {
        match operations {
            [Operation::Transfer(read, write)] => {
                let length = DeviceError::Length { written: write.len(), read: read.len() };
                let command: &Frame = (*write).try_into().map_err(|_| length)?;
                let answer: &mut Frame = (*read).try_into().map_err(|_| length)?;
                *answer = self.exchange(command);
                Ok(())
            }
            [Operation::TransferInPlace(words)] => {
                let length = DeviceError::Length { written: words.len(), read: words.len() };
                let frame: &mut Frame = (*words).try_into().map_err(|_| length)?;
                *frame = self.exchange(frame);
                Ok(())
            }
            _ => Err(DeviceError::NotFullDuplex),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Command, decode_feedback, encode_command};
    use crate::plant::{GIMBAL, SUPPLY_V};
    use embedded_hal::spi::Error as _;
    use std::cell::Cell;

    fn command(sequence: u16, pan_v: f32) -> Frame {
        encode_command(&Command { sequence, voltages_v: Axes::new(pan_v, 0.0) })
    }

    #[test]
    fn answers_with_state_before_command() {
        let now_ns = Cell::new(0);
        let mut gimbal = SimulatedGimbal::new(GIMBAL, SUPPLY_V, || now_ns.get());
        let mut answer = [0; FRAME_LEN];

        gimbal.transfer(&mut answer, &command(41, 100.0)).unwrap();
        let first = decode_feedback(&answer).unwrap();
        assert_eq!((first.sequence, first.accepted), (0, 0));
        assert_eq!(first.status, Status::default());

        now_ns.set(50_000_000);
        gimbal.transfer(&mut answer, &command(42, 0.0)).unwrap();
        let second = decode_feedback(&answer).unwrap();
        assert_eq!((second.sequence, second.accepted), (1, 41));
        assert!(second.counts.pan > 0, "24 V for 50 ms turn the axis");
        assert!(second.status.contains(Status::SUPPLY_LIMITED));
    }

    #[test]
    fn keeps_voltages_and_reports_damaged_command_in_next_answer() {
        let now_ns = Cell::new(0);
        let mut gimbal = SimulatedGimbal::new(GIMBAL, SUPPLY_V, || now_ns.get());
        let mut frame = command(7, 3.0);
        gimbal.transfer_in_place(&mut frame).unwrap();

        now_ns.set(1_000_000);
        let mut frame = command(8, 0.0);
        frame[5] ^= 0x10;
        gimbal.transfer_in_place(&mut frame).unwrap();
        let moving_a = gimbal.true_state().pan.current_a;

        now_ns.set(2_000_000);
        let mut frame = command(9, 0.0);
        gimbal.transfer_in_place(&mut frame).unwrap();
        let feedback = decode_feedback(&frame).unwrap();
        assert_eq!(feedback.accepted, 7);
        assert!(feedback.status.contains(Status::COMMAND_REJECTED));
        assert!(moving_a > 0.5 && feedback.currents_ma.pan > 500, "3 V still on the motor");
    }

    #[test]
    fn rejects_other_transactions_without_effect() {
        let mut gimbal = SimulatedGimbal::new(GIMBAL, SUPPLY_V, || unreachable!("the clock was read"));
        let mut answer = [0; FRAME_LEN];
        for (written, read) in [(15, 16), (16, 15), (0, 0), (17, 17)] {
            let error = gimbal.transfer(&mut vec![0; read], &vec![0; written]).unwrap_err();
            assert_eq!(error, DeviceError::Length { written, read });
            assert_eq!(error.kind(), ErrorKind::FrameFormat);
        }
        assert_eq!(gimbal.read(&mut answer), Err(DeviceError::NotFullDuplex));
        assert_eq!(gimbal.write(&answer), Err(DeviceError::NotFullDuplex));
        assert_eq!(gimbal.transaction(&mut []), Err(DeviceError::NotFullDuplex));
        assert_eq!(DeviceError::NotFullDuplex.kind(), ErrorKind::Other);
    }

    #[test]
    fn flags_long_silence() {
        let now_ns = Cell::new(0);
        let mut gimbal = SimulatedGimbal::new(GIMBAL, SUPPLY_V, || now_ns.get());
        gimbal.transfer_in_place(&mut command(0, 0.0)).unwrap();
        now_ns.set(60_000_000_000);
        let mut frame = command(1, 0.0);
        gimbal.transfer_in_place(&mut frame).unwrap();
        assert!(decode_feedback(&frame).unwrap().status.contains(Status::BEHIND));
    }
}

//! The controller's side of the SPI bus: one exchange of voltages for measurements.

use crate::axes::Axes;
use crate::frame::{self, Command, FRAME_LEN, Feedback, FrameError, SequenceCheck, Status};
use embedded_hal::spi::SpiDevice;
use serde::Serialize;

/// The traffic on the bus, and its losses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LinkCounters {
    /// Attempted exchanges.
    pub exchanges: u64,
    /// Feedback frames from the gimbal that never arrived undamaged.
    pub lost_feedback: u64,
    /// Commands the gimbal reported as damaged.
    pub lost_commands: u64,
    /// Feedback frames with a wrong checksum.
    pub crc_errors: u64,
    /// Feedback frames that were wrong in another way.
    pub format_errors: u64,
    /// Transfers that the bus itself failed.
    pub bus_errors: u64,
    /// Feedback frames in which the gimbal reported that its simulation lags behind.
    pub behind: u64,
}

/// The reason why an exchange returned no measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ExchangeError<E> {
    /// The bus failed.
    #[error("SPI transfer failed: {0:?}")]
    Bus(E),
    /// The answer was not a feedback frame.
    #[error("unusable feedback: {0}")]
    Frame(#[from] FrameError),
}

/// A gimbal at the other end of an SPI bus.
#[derive(Debug)]
pub struct Gimbal<SPI> {
    spi: SPI,
    sequence: u16,
    check: SequenceCheck,
    counters: LinkCounters,
}

impl<SPI: SpiDevice> Gimbal<SPI> {
    /// Creates a gimbal on `spi`.
    pub fn new(spi: SPI) -> Self {
        Self { spi, sequence: 0, check: SequenceCheck::default(), counters: LinkCounters::default() }
    }

    /// Sends motor voltages and receives the measurements of the same moment.
    ///
    /// Feedback that arrives after a gap is still the newest available: it is returned, and the gap
    /// is counted. The voltages are narrowed to `f32`; the gimbal holds them until it receives new
    /// ones.
    ///
    /// # Errors
    ///
    /// Returns an [`ExchangeError`] if there is no usable feedback. The gimbal may still have
    /// received the voltages.
    pub fn exchange(&mut self, voltages_v: Axes<f64>) -> Result<Feedback, ExchangeError<SPI::Error>> {
        let command = Command { sequence: self.sequence, voltages_v: voltages_v.map(|v| v as f32) };
        self.sequence = self.sequence.wrapping_add(1);
        self.counters.exchanges += 1;

        let mut answer = [0; FRAME_LEN];
        self.spi.transfer(&mut answer, &frame::encode_command(&command)).map_err(|error| {
            self.counters.bus_errors += 1;
            ExchangeError::Bus(error)
        })?;
        let feedback = frame::decode_feedback(&answer).inspect_err(|error| match error {
            FrameError::BadCrc { .. } => self.counters.crc_errors += 1,
            _ => self.counters.format_errors += 1,
        })?;

        if let Err(FrameError::SequenceGap { expected, found }) = self.check.follow(feedback.sequence) {
            let ahead = found.wrapping_sub(expected);
            // A sequence number from the past is not a gap: the gimbal was restarted, which counts
            // as one frame.
            self.counters.lost_feedback += if ahead < 1 << 15 { u64::from(ahead) } else { 1 };
        }
        self.counters.lost_commands += u64::from(feedback.status.contains(Status::COMMAND_REJECTED));
        self.counters.behind += u64::from(feedback.status.contains(Status::BEHIND));
        Ok(feedback)
    }

    /// Returns the traffic on the bus so far.
    pub const fn counters(&self) -> LinkCounters {
        self.counters
    }

    /// Returns the device to which the gimbal is connected.
    pub const fn device(&self) -> &SPI {
        &self.spi
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{DeviceError, SimulatedGimbal};
    use crate::plant::{GIMBAL, SUPPLY_V};
    use embedded_hal::spi::{ErrorType, Operation};

    /// A bus that damages, drops or rejects the transfers with given numbers.
    struct BadBus<D> {
        device: D,
        transfers: u32,
        damage_answer: Option<u32>,
        damage_command: Option<u32>,
        drop_answer: Option<u32>,
    }

    impl<D: SpiDevice> ErrorType for BadBus<D> {
        type Error = D::Error;
    }

    impl<D: SpiDevice> SpiDevice for BadBus<D> {
        fn transaction(&mut self, operations: &mut [Operation<'_, u8>]) -> Result<(), D::Error> {
            let number = Some(self.transfers);
            self.transfers += 1;
            let [Operation::Transfer(read, write)] = operations else {
                return self.device.transaction(operations);
            };
            let mut command = [0; FRAME_LEN];
            command.copy_from_slice(write);
            command[6] ^= u8::from(self.damage_command == number);
            self.device.transfer(read, &command)?;
            read[9] ^= u8::from(self.damage_answer == number);
            if self.drop_answer == number {
                read.fill(0xFF);
            }
            Ok(())
        }
    }

    fn bad_bus() -> Gimbal<BadBus<impl SpiDevice<Error = DeviceError>>> {
        let mut now_ns = 0;
        let clock = move || {
            now_ns += 100_000;
            now_ns
        };
        let device = SimulatedGimbal::new(GIMBAL, SUPPLY_V, clock);
        let bus =
            BadBus { device, transfers: 0, damage_answer: None, damage_command: None, drop_answer: None };
        Gimbal::new(bus)
    }

    #[test]
    fn loses_nothing_on_clean_bus() {
        let mut gimbal = bad_bus();
        // Past the wrap of the 16-bit sequence numbers.
        for _ in 0..70_000 {
            gimbal.exchange(Axes::both(0.0)).unwrap();
        }
        assert_eq!(gimbal.counters(), LinkCounters { exchanges: 70_000, ..LinkCounters::default() });
    }

    #[test]
    fn counts_every_kind_of_loss_once() {
        let mut gimbal = bad_bus();
        gimbal.spi.damage_command = Some(2);
        gimbal.spi.damage_answer = Some(4);
        gimbal.spi.drop_answer = Some(6);
        let failures: Vec<u32> = (0..10).filter(|_| gimbal.exchange(Axes::both(1.0)).is_err()).collect();
        assert_eq!(failures, [4, 6]);
        let expected = LinkCounters {
            exchanges: 10,
            lost_feedback: 2,
            lost_commands: 1,
            crc_errors: 1,
            format_errors: 1,
            ..LinkCounters::default()
        };
        assert_eq!(gimbal.counters(), expected);
    }
}

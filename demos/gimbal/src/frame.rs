//! The 16-byte frames on the SPI bus, one in each direction at the same time.
//!
//! All numbers are little-endian. The last two bytes are the CRC-16/CCITT (polynomial 0x1021, start
//! value 0xFFFF) of the preceding fourteen.
//!
//! | Bytes | Command (controller to gimbal)      | Feedback (gimbal to controller)            |
//! |-------|-------------------------------------|--------------------------------------------|
//! | 0     | 0xC5                                | 0xFB                                       |
//! | 1     | 0                                   | status flags, see [`Status`]               |
//! | 2–3   | sequence, `u16`                     | sequence, `u16`                            |
//! | 4–5   | pan voltage in V, `f32` …           | sequence of the last command accepted, `u16` |
//! | 6–7   | …                                   | pan encoder count, `i16`                   |
//! | 8–9   | tilt voltage in V, `f32` …          | tilt encoder count, `i16`                  |
//! | 10–11 | …                                   | pan current in mA, `i16`                   |
//! | 12–13 | 0                                   | tilt current in mA, `i16`                  |
//! | 14–15 | CRC                                 | CRC                                        |
//!
//! On a full-duplex bus the answer is sent while the command is still arriving, so a feedback frame
//! cannot refer to the command sent with it, only to earlier ones.

use crate::axes::Axes;
use crate::encoder;
use crc::{CRC_16_IBM_3740, Crc};

/// Length of a frame in bytes.
pub const FRAME_LEN: usize = 16;

/// A frame in its form on the bus.
pub type Frame = [u8; FRAME_LEN];

/// The first byte of a command.
pub(crate) const COMMAND_MAGIC: u8 = 0xC5;
const FEEDBACK_MAGIC: u8 = 0xFB;
const CRC_AT: usize = FRAME_LEN - 2;
static CRC: Crc<u16> = Crc::<u16>::new(&CRC_16_IBM_3740);

/// A command from the controller to the gimbal.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Command {
    /// Counts the commands sent, wrapping around.
    pub sequence: u16,
    /// Motor voltages to hold until the next command.
    pub voltages_v: Axes<f32>,
}

/// The feedback from the gimbal to the controller, all sampled at the same instant.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Feedback {
    /// Counts the feedback frames sent, wrapping around.
    pub sequence: u16,
    /// Sequence of the last command the gimbal accepted.
    pub accepted: u16,
    /// Encoder counts, see [`encoder`].
    pub counts: Axes<i16>,
    /// Motor currents in milliamperes.
    pub currents_ma: Axes<i16>,
    /// The status flags.
    pub status: Status,
}

impl Feedback {
    /// Returns the measured angles, in radians.
    pub fn angles_rad(&self) -> Axes<f64> {
        self.counts.map(encoder::angle_rad)
    }

    /// Returns the measured currents, in amperes.
    pub fn currents_a(&self) -> Axes<f64> {
        self.currents_ma.map(|ma| f64::from(ma) * 1e-3)
    }
}

/// Status flags of the gimbal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Status(u8);

impl Status {
    /// The last command did not decode; the previous voltages still apply.
    pub const COMMAND_REJECTED: Self = Self(1 << 0);
    /// The last command requested more than the supply can provide.
    pub const SUPPLY_LIMITED: Self = Self(1 << 1);
    /// An axis is at a hard stop.
    pub const AT_STOP: Self = Self(1 << 2);
    /// The simulation has not caught up with the time: the values are older than they should be.
    pub const BEHIND: Self = Self(1 << 3);

    /// Returns whether every flag of `other` is set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Sets or clears the flags of `other`.
    pub const fn set(&mut self, other: Self, on: bool) {
        if on {
            self.0 |= other.0;
        } else {
            self.0 &= !other.0;
        }
    }

    /// Returns the flags as they are in a frame.
    pub const fn bits(self) -> u8 {
        self.0
    }
}

/// The reason why sixteen bytes are not the expected frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The first byte is not that of this kind of frame.
    #[error("frame starts with {found:#04x} instead of {expected:#04x}")]
    BadMagic {
        /// The first byte of such a frame.
        expected: u8,
        /// The first byte received.
        found: u8,
    },
    /// The checksum does not match: the frame was damaged in transit.
    #[error("frame has CRC {found:#06x} where its bytes give {computed:#06x}")]
    BadCrc {
        /// Checksum of the bytes received.
        computed: u16,
        /// Checksum in the frame.
        found: u16,
    },
    /// The frame is undamaged, but contains a value that its sender never sends.
    #[error("frame has an impossible {field}")]
    BadValue {
        /// The field in question.
        field: &'static str,
    },
    /// Frames are missing between the last one and this one, or this one is a duplicate.
    #[error("frame has sequence {found} where {expected} follows")]
    SequenceGap {
        /// The sequence that follows the last frame.
        expected: u16,
        /// The sequence of this frame.
        found: u16,
    },
}

/// Encodes a command for the bus.
pub fn encode_command(command: &Command) -> Frame {
    let mut frame = [0; FRAME_LEN];
    frame[0] = COMMAND_MAGIC;
    frame[2..4].copy_from_slice(&command.sequence.to_le_bytes());
    frame[4..8].copy_from_slice(&command.voltages_v.pan.to_le_bytes());
    frame[8..12].copy_from_slice(&command.voltages_v.tilt.to_le_bytes());
    seal(frame)
}

/// Decodes a command from the bus.
///
/// # Errors
///
/// Returns a [`FrameError`] if the bytes are not a command, are damaged, or contain a voltage that
/// is not finite.
pub fn decode_command(frame: &Frame) -> Result<Command, FrameError> {
    open(frame, COMMAND_MAGIC)?;
    let volts = |at: usize| f32::from_le_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]]);
    let voltages_v = Axes::new(volts(4), volts(8));
    if !voltages_v.pan.is_finite() {
        return Err(FrameError::BadValue { field: "pan voltage" });
    }
    if !voltages_v.tilt.is_finite() {
        return Err(FrameError::BadValue { field: "tilt voltage" });
    }
    Ok(Command { sequence: word(frame, 2), voltages_v })
}

/// Encodes feedback for the bus.
pub fn encode_feedback(feedback: &Feedback) -> Frame {
    let mut frame = [0; FRAME_LEN];
    frame[0] = FEEDBACK_MAGIC;
    frame[1] = feedback.status.bits();
    frame[2..4].copy_from_slice(&feedback.sequence.to_le_bytes());
    frame[4..6].copy_from_slice(&feedback.accepted.to_le_bytes());
    frame[6..8].copy_from_slice(&feedback.counts.pan.to_le_bytes());
    frame[8..10].copy_from_slice(&feedback.counts.tilt.to_le_bytes());
    frame[10..12].copy_from_slice(&feedback.currents_ma.pan.to_le_bytes());
    frame[12..14].copy_from_slice(&feedback.currents_ma.tilt.to_le_bytes());
    seal(frame)
}

/// Decodes feedback from the bus.
///
/// # Errors
///
/// Returns a [`FrameError`] if the bytes are not feedback, are damaged, or contain a count outside
/// of the encoder's range.
pub fn decode_feedback(frame: &Frame) -> Result<Feedback, FrameError> {
    open(frame, FEEDBACK_MAGIC)?;
    let signed = |at: usize| word(frame, at).cast_signed();
    let feedback = Feedback {
        sequence: word(frame, 2),
        accepted: word(frame, 4),
        counts: Axes::new(signed(6), signed(8)),
        currents_ma: Axes::new(signed(10), signed(12)),
        status: Status(frame[1]),
    };
    let in_turn = encoder::MIN_COUNT..=encoder::MAX_COUNT;
    if !in_turn.contains(&feedback.counts.pan) {
        return Err(FrameError::BadValue { field: "pan count" });
    }
    if !in_turn.contains(&feedback.counts.tilt) {
        return Err(FrameError::BadValue { field: "tilt count" });
    }
    Ok(feedback)
}

/// Tracks the sequence numbers of one direction.
#[derive(Debug, Clone, Copy, Default)]
pub struct SequenceCheck {
    next: Option<u16>,
}

impl SequenceCheck {
    /// Processes the sequence number of an undamaged frame; the first one is always correct.
    ///
    /// # Errors
    ///
    /// Returns [`FrameError::SequenceGap`] if it does not follow the last one. The check continues
    /// from `found`.
    pub fn follow(&mut self, found: u16) -> Result<(), FrameError> {
        let expected = self.next.replace(found.wrapping_add(1)).unwrap_or(found);
        if found == expected { Ok(()) } else { Err(FrameError::SequenceGap { expected, found }) }
    }
}

fn word(frame: &Frame, at: usize) -> u16 {
    u16::from_le_bytes([frame[at], frame[at + 1]])
}

fn seal(mut frame: Frame) -> Frame {
    let crc = CRC.checksum(&frame[..CRC_AT]);
    frame[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
    frame
}

fn open(frame: &Frame, expected: u8) -> Result<(), FrameError> {
    if frame[0] != expected {
        return Err(FrameError::BadMagic { expected, found: frame[0] });
    }
    let (computed, found) = (CRC.checksum(&frame[..CRC_AT]), word(frame, CRC_AT));
    if computed == found { Ok(()) } else { Err(FrameError::BadCrc { computed, found }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn feedback() -> impl Strategy<Value = Feedback> {
        let count = encoder::MIN_COUNT..=encoder::MAX_COUNT;
        (any::<[u16; 2]>(), count.clone(), count, any::<[i16; 2]>(), any::<u8>()).prop_map(
            |([sequence, accepted], pan, tilt, [pan_ma, tilt_ma], status)| Feedback {
                sequence,
                accepted,
                counts: Axes::new(pan, tilt),
                currents_ma: Axes::new(pan_ma, tilt_ma),
                status: Status(status),
            },
        )
    }

    proptest! {
        #[test]
        fn round_trips_commands_over_bus(sequence: u16, pan in -1e6..1e6_f32, tilt in -1e6..1e6_f32) {
            let command = Command { sequence, voltages_v: Axes::new(pan, tilt) };
            prop_assert_eq!(decode_command(&encode_command(&command)), Ok(command));
        }

        #[test]
        fn round_trips_feedback_over_bus(feedback in feedback()) {
            prop_assert_eq!(decode_feedback(&encode_feedback(&feedback)), Ok(feedback));
        }

        #[test]
        fn never_panics_on_arbitrary_bytes(bytes: Frame) {
            let _ = decode_command(&bytes);
            let _ = decode_feedback(&bytes);
        }

        #[test]
        fn never_panics_on_arbitrary_bytes_with_valid_crc(mut bytes: Frame) {
            for magic in [COMMAND_MAGIC, FEEDBACK_MAGIC] {
                bytes[0] = magic;
                let sealed = seal(bytes);
                let _ = decode_command(&sealed);
                let _ = decode_feedback(&sealed);
            }
        }

        #[test]
        fn detects_any_burst_of_up_to_16_bits(
            feedback in feedback(), at in 0..112_u32, burst in 1..=u16::MAX,
        ) {
            let frame = u128::from_le_bytes(encode_feedback(&feedback));
            let damaged = (frame ^ (u128::from(burst) << at)).to_le_bytes();
            prop_assert!(decode_feedback(&damaged).is_err());
        }
    }

    #[test]
    fn distinguishes_both_frame_types() {
        let command = encode_command(&Command::default());
        let error = FrameError::BadMagic { expected: FEEDBACK_MAGIC, found: COMMAND_MAGIC };
        assert_eq!(decode_feedback(&command), Err(error));
    }

    #[test]
    fn rejects_non_finite_voltage() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let frame = encode_command(&Command { sequence: 0, voltages_v: Axes::new(0.0, bad) });
            assert_eq!(decode_command(&frame), Err(FrameError::BadValue { field: "tilt voltage" }));
        }
    }

    #[test]
    fn detects_gaps_across_sequence_wrap() {
        let mut check = SequenceCheck::default();
        assert_eq!(check.follow(u16::MAX), Ok(()));
        assert_eq!(check.follow(0), Ok(()));
        assert_eq!(check.follow(3), Err(FrameError::SequenceGap { expected: 1, found: 3 }));
        assert_eq!(check.follow(4), Ok(()));
        assert_eq!(check.follow(4), Err(FrameError::SequenceGap { expected: 5, found: 4 }));
    }
}

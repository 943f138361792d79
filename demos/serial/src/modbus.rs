//! Frames of Modbus RTU: function 23, which writes and reads registers in one exchange.
//!
//! On the line, a pause of 3.5 characters ends a frame. This end knows the length of each answer
//! instead, and discards the rest of a wrong one before the next request.

const READ_WRITE_REGISTERS: u8 = 0x17;
/// Bit of the function in an answer that reports an exception.
const EXCEPTION: u8 = 0x80;
/// Length of [`request`].
pub const REQUEST_BYTES: usize = 15;
/// Length of the answer to [`request`].
pub const ANSWER_BYTES: usize = 7;

/// Reason why an answer is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameError {
    /// The check sum differs.
    CheckSum,
    /// The frame comes from another device.
    Address(u8),
    /// The device reports this exception.
    Exception(u8),
    /// The frame belongs to another request.
    Function(u8),
}

/// Returns the check sum of a frame.
#[must_use]
pub fn crc(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0xffff, |crc, &byte| {
        (0..8).fold(crc ^ u16::from(byte), |crc, _| if crc & 1 == 0 { crc >> 1 } else { (crc >> 1) ^ 0xa001 })
    })
}

/// Appends the check sum to `body`.
fn with_crc<const N: usize>(body: &[u8]) -> [u8; N] {
    let mut frame = [0; N];
    frame[..N - 2].copy_from_slice(body);
    frame[N - 2..].copy_from_slice(&crc(body).to_le_bytes());
    frame
}

/// Returns the request that writes `value` to the first register of `device`, and reads the second.
#[must_use]
pub fn request(device: u8, value: u16) -> [u8; REQUEST_BYTES] {
    let [high, low] = value.to_be_bytes();
    with_crc(&[device, READ_WRITE_REGISTERS, 0, 1, 0, 1, 0, 0, 0, 1, 2, high, low])
}

/// Returns the value that a [`request`] to `device` writes; `None` if it is no such request.
#[must_use]
pub fn parse_request(device: u8, frame: &[u8; REQUEST_BYTES]) -> Option<u16> {
    let value = u16::from_be_bytes([frame[11], frame[12]]);
    (*frame == request(device, value)).then_some(value)
}

/// Returns the answer to [`request`] with the value of the second register.
#[must_use]
pub fn answer(device: u8, value: u16) -> [u8; ANSWER_BYTES] {
    let [high, low] = value.to_be_bytes();
    with_crc(&[device, READ_WRITE_REGISTERS, 2, high, low])
}

/// Returns the value in an [`answer`] of `device`.
///
/// # Errors
/// See [`FrameError`].
pub fn parse_answer(device: u8, frame: &[u8; ANSWER_BYTES]) -> Result<u16, FrameError> {
    let [address, function, count, high, low, crc @ ..] = *frame;
    if address == device && function == READ_WRITE_REGISTERS | EXCEPTION {
        // An exception is shorter than an answer, so its check sum is elsewhere.
        return Err(FrameError::Exception(count));
    }
    if self::crc(&frame[..ANSWER_BYTES - 2]) != u16::from_le_bytes(crc) {
        return Err(FrameError::CheckSum);
    }
    match (address, function, count) {
        (address, READ_WRITE_REGISTERS, 2) if address == device => Ok(u16::from_be_bytes([high, low])),
        (address, ..) if address != device => Err(FrameError::Address(address)),
        (_, function, _) => Err(FrameError::Function(function)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_sum_is_that_of_the_specification() {
        // The standard check value of CRC-16/MODBUS.
        assert_eq!(crc(b"123456789"), 0x4b37);
    }

    #[test]
    fn round_trip_keeps_values() {
        assert_eq!(parse_request(7, &request(7, 0x1234)), Some(0x1234));
        assert_eq!(parse_request(8, &request(7, 0x1234)), None);
        assert_eq!(parse_answer(7, &answer(7, 0xfedc)), Ok(0xfedc));
    }

    #[test]
    fn rejects_each_flipped_bit() {
        let good = answer(7, 0x0102);
        for bit in 0..8 * ANSWER_BYTES {
            let mut bad = good;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(parse_answer(7, &bad).is_err(), "bit {bit}");
        }
        assert_eq!(parse_answer(8, &good), Err(FrameError::Address(7)));
        assert_eq!(parse_answer(7, &[7, 0x97, 2, 0, 0, 0, 0]), Err(FrameError::Exception(2)));
    }
}

//! Driver of the MPU-6050, an accelerometer and gyroscope on I²C.

use embedded_hal::i2c::I2c;

/// Address with pin AD0 at ground.
pub const ADDRESS: u8 = 0x68;

/// Registers that the driver uses.
pub mod register {
    /// Divider of the sampling rate.
    pub const SAMPLE_RATE_DIVIDER: u8 = 0x19;
    /// Low-pass filter.
    pub const CONFIGURATION: u8 = 0x1a;
    /// Range of the gyroscope.
    pub const GYROSCOPE: u8 = 0x1b;
    /// Range of the accelerometer.
    pub const ACCELEROMETER: u8 = 0x1c;
    /// First of 14 bytes: accelerations, temperature, rates.
    pub const MEASUREMENT: u8 = 0x3b;
    /// Sleep, and the source of the clock.
    pub const POWER: u8 = 0x6b;
    /// Identity.
    pub const WHO_AM_I: u8 = 0x75;
}

/// Contents of [`register::WHO_AM_I`].
pub const IDENTITY: u8 = 0x68;
/// Counts per g in the range of 4 g.
pub const COUNTS_PER_G: f32 = 8_192.0;
/// Counts per degree and second in the range of 500°/s.
pub const COUNTS_PER_DEGREE: f32 = 65.5;

/// Awake, clock of the gyroscope, 1 kHz / 5, filter of 44 Hz, 500°/s, 4 g.
const SETTINGS: [[u8; 2]; 5] = [
    [register::POWER, 0x01],
    [register::SAMPLE_RATE_DIVIDER, 4],
    [register::CONFIGURATION, 3],
    [register::GYROSCOPE, 0x08],
    [register::ACCELEROMETER, 0x08],
];

/// Reason why a sensor cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ImuError<E> {
    /// The bus failed.
    #[error("the bus failed: {0}")]
    Bus(E),
    /// Another device has the address.
    #[error("the device at {ADDRESS:#04x} has the identity {0:#04x}; check the address")]
    Identity(u8),
    /// A setting is not read back as written, as after a reset by a drop of the supply.
    #[error("register {0:#04x} has lost its setting; check the supply")]
    Reset(u8),
}

/// A measurement, in the axes of the sensor.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Measurement {
    /// Accelerations, in g.
    pub acceleration: [f32; 3],
    /// Rates, in degrees per second.
    pub rate: [f32; 3],
}

/// A sensor.
#[derive(Debug)]
pub struct Imu<B>(B);

impl<B: I2c> Imu<B> {
    /// Identifies and configures the sensor.
    ///
    /// # Errors
    /// See [`ImuError`].
    pub fn start(bus: B) -> Result<Self, ImuError<B::Error>> {
        let mut imu = Self(bus);
        let identity = imu.read_register(register::WHO_AM_I)?;
        if identity != IDENTITY {
            return Err(ImuError::Identity(identity));
        }
        for setting in SETTINGS {
            imu.0.write(ADDRESS, &setting).map_err(ImuError::Bus)?;
        }
        imu.check().map(|()| imu)
    }

    fn read_register(&mut self, register: u8) -> Result<u8, ImuError<B::Error>> {
        let mut value = [0];
        self.0.write_read(ADDRESS, &[register], &mut value).map_err(ImuError::Bus)?;
        Ok(value[0])
    }

    /// Checks that the sensor has its settings.
    ///
    /// # Errors
    /// See [`ImuError`].
    pub fn check(&mut self) -> Result<(), ImuError<B::Error>> {
        for [register, value] in SETTINGS {
            if self.read_register(register)? != value {
                return Err(ImuError::Reset(register));
            }
        }
        Ok(())
    }

    /// Reads a measurement, in one transaction.
    ///
    /// # Errors
    /// See [`ImuError`].
    pub fn measure(&mut self) -> Result<Measurement, ImuError<B::Error>> {
        let mut bytes = [0; 14];
        self.0.write_read(ADDRESS, &[register::MEASUREMENT], &mut bytes).map_err(ImuError::Bus)?;
        let value = |word: usize| f32::from(i16::from_be_bytes([bytes[2 * word], bytes[2 * word + 1]]));
        Ok(Measurement {
            acceleration: std::array::from_fn(|axis| value(axis) / COUNTS_PER_G),
            rate: std::array::from_fn(|axis| value(4 + axis) / COUNTS_PER_DEGREE),
        })
    }
}

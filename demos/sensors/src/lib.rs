//! Two sensors, read in two ways: a crate to copy for I²C and industrial I/O.
//!
//! * The task `tilt` asks an inertial sensor on I²C on the grid. The calling thread sleeps during a
//!   transaction, for 0.4 ms at 400 kHz, at most for the timeout of [`i2c::Bus`]: it suspends
//!   itself, so tasks below it run, and its response time contains the bus.
//! * The task `current` is bound to the buffer of a converter, which a trigger of the kernel fills.
//!   The buffer's descriptor releases it with each [`WATERMARK`] scans.
//!
//! Refused transactions and dropped scans are counted. [`MAX_FAILURES`] transactions in a row, a
//! sensor that has lost its settings or a converter that is gone stop the app with a [`Fault`].
//!
//! [`simulated`] contains both devices. The crate has been tested with them, not with hardware:
//! [`i2c::Bus`] with a file that is no bus only.

pub mod i2c;
pub mod iio;
pub mod imu;
pub mod simulated;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use i2c::BusError;
use iio::{Scan, Settings};
use imu::{ImuError, Measurement};

/// Period of measurements of the tilt.
pub const PERIOD: punctual::Duration = punctual::Duration::from_millis(5);
/// Measurements of the tilt after which the settings of the sensor are checked.
pub const CHECK_PERIOD: u64 = 100;
/// Failed transactions in a row, after which the app stops.
pub const MAX_FAILURES: u32 = 5;
/// Scans after which the buffer is readable.
pub const WATERMARK: u32 = 10;
/// Settings of the converter.
pub const CONVERTER: Settings<'static> = Settings {
    channels: &["in_voltage0"],
    trigger: None,
    frequency: 1_000,
    length: 512,
    watermark: WATERMARK,
};
/// Part of the integrated rate in the estimate of the tilt; the rest is of the acceleration.
const RATE_WEIGHT: f32 = 0.98;
/// Part of a new scan in the mean voltage.
const SCAN_WEIGHT: f32 = 0.02;

/// Reason why the app stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The inertial sensor.
    #[error(transparent)]
    Imu(ImuError<BusError>),
    /// The converter is gone.
    #[error("the converter is gone; check its connection")]
    ConverterClosed,
}

/// Readings and counts.
#[derive(Debug, Default)]
pub struct Readings {
    /// Measurements of the tilt.
    pub measurements: AtomicU64,
    /// Transactions that failed.
    pub failures: AtomicU64,
    /// Scans of the converter.
    pub scans: AtomicU64,
    /// Scans that the kernel has dropped.
    pub lost_scans: AtomicU64,
    /// Tilt in degrees, as bits of an `f32`.
    pub tilt: AtomicU32,
    /// Mean voltage in millivolts, as bits of an `f32`.
    pub millivolts: AtomicU32,
    /// Fault that stopped the app.
    pub fault: OnceLock<Fault>,
}

impl Readings {
    fn stop(&self, fault: Fault) {
        let _ = self.fault.set(fault);
        punctual::shutdown();
    }
}

/// Estimates the tilt about axis x, in degrees, from the last estimate; the first measurement has
/// none.
fn estimate(last: Option<f32>, measurement: &Measurement) -> f32 {
    let [_, y, z] = measurement.acceleration;
    let by_acceleration = y.atan2(z).to_degrees();
    last.map_or(by_acceleration, |last| {
        let by_rate = last + measurement.rate[0] * PERIOD.as_nanos() as f32 / 1e9;
        RATE_WEIGHT * by_rate + (1.0 - RATE_WEIGHT) * by_acceleration
    })
}

/// Updates the mean voltage by a scan.
fn smooth(mean: &mut Option<f32>, scan: &Scan) {
    let value = scan.values[0] as f32;
    *mean = Some(mean.map_or(value, |mean| mean + SCAN_WEIGHT * (value - mean)));
}

/// The app.
#[punctual::app(main = false)]
pub mod app {
    use std::sync::Arc;
    use std::sync::atomic::Ordering::Relaxed;

    use super::i2c::AnyBus;
    use super::iio::Buffer;
    use super::imu::{Imu, ImuError};
    use super::{CHECK_PERIOD, Fault, MAX_FAILURES, PERIOD, Readings, estimate, smooth};

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        imu: Imu<AnyBus>,
        buffer: Buffer,
        tilt_readings: Arc<Readings>,
        scan_readings: Arc<Readings>,
        left: u64,
    }

    #[init]
    fn init(
        _: init::Context,
        imu: Imu<AnyBus>,
        buffer: Buffer,
        readings: Arc<Readings>,
        left: u64,
    ) -> (Shared, Local) {
        let (tilt_readings, scan_readings) = (Arc::clone(&readings), readings);
        (Shared {}, Local { imu, buffer, tilt_readings, scan_readings, left })
    }

    #[task(
        period = PERIOD,
        priority = 1,
        local = [imu, tilt_readings, left, last: Option<f32> = None, failures: u32 = 0],
    )]
    fn tilt(cx: tilt::Context) {
        let tilt::LocalResources { imu, tilt_readings, left, last, failures, .. } = cx.local;
        let mut result = imu.measure();
        if left.is_multiple_of(CHECK_PERIOD) {
            result = result.and_then(|measurement| imu.check().map(|()| measurement));
        }
        match result {
            Ok(measurement) => {
                let tilt = estimate(*last, &measurement);
                (*last, *failures) = (Some(tilt), 0);
                tilt_readings.tilt.store(tilt.to_bits(), Relaxed);
                tilt_readings.measurements.fetch_add(1, Relaxed);
            }
            Err(error) => {
                *failures += 1;
                tilt_readings.failures.fetch_add(1, Relaxed);
                if !matches!(error, ImuError::Bus(_)) || *failures >= MAX_FAILURES {
                    tilt_readings.stop(Fault::Imu(error));
                }
            }
        }
        *left = left.saturating_sub(1);
        if *left == 0 {
            punctual::shutdown();
        }
    }

    #[task(binds = buffer, priority = 2, local = [buffer, scan_readings, mean: Option<f32> = None])]
    fn current(cx: current::Context) {
        let current::LocalResources { buffer, scan_readings, mean, .. } = cx.local;
        let batch = buffer.read(|scan| smooth(mean, scan));
        scan_readings.scans.fetch_add(batch.scans, Relaxed);
        scan_readings.lost_scans.fetch_add(batch.lost, Relaxed);
        if let Some(mean) = mean {
            scan_readings.millivolts.store(mean.to_bits(), Relaxed);
        }
        if batch.is_closed {
            scan_readings.stop(Fault::ConverterClosed);
        }
    }
}

impl Readings {
    /// Last tilt, in degrees, and mean voltage, in millivolts.
    #[must_use]
    pub fn last(&self) -> (f32, f32) {
        let value = |bits: &AtomicU32| f32::from_bits(bits.load(Relaxed));
        (value(&self.tilt), value(&self.millivolts))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use punctual::Config;

    use super::*;
    use crate::i2c::AnyBus;
    use crate::iio::{Buffer, BufferError};
    use crate::imu::{Imu, register};
    use crate::simulated::{Faults, SimulatedConverter, SimulatedImu, tilt};

    const SCAN_NS: i64 = 1_000_000;

    fn imu(faults: Faults) -> Result<Imu<AnyBus>, ImuError<BusError>> {
        Imu::start(AnyBus(Box::new(SimulatedImu::new(faults))))
    }

    fn converter() -> (SimulatedConverter, Buffer) {
        let converter = SimulatedConverter::create().unwrap();
        let buffer = Buffer::open(converter.sysfs(), &converter.device(), &CONVERTER).unwrap();
        (converter, buffer)
    }

    /// Runs the app in virtual time for a number of measurements, with scans at these milliseconds.
    fn run(faults: Faults, scans: &[i64], measurements: u64) -> Arc<Readings> {
        let (mut converter, buffer) = converter();
        for &millisecond in scans {
            converter.scan(millisecond * SCAN_NS, [250.0, 0.0]).unwrap();
        }
        let readings = Arc::<Readings>::default();
        let config = Config::new().virtual_time().until(Duration::from_secs(60));
        let imu = imu(faults).unwrap();
        app::run(config, imu, buffer, Arc::clone(&readings), measurements).unwrap();
        readings
    }

    fn counts(readings: &Readings) -> [u64; 4] {
        [&readings.measurements, &readings.failures, &readings.scans, &readings.lost_scans]
            .map(|count| count.load(Relaxed))
    }

    #[test]
    fn estimates_tilt_and_voltage() {
        let scans: Vec<i64> = (0..200).collect();
        let readings = run(Faults::default(), &scans, 1_001);
        assert_eq!((counts(&readings), readings.fault.get()), ([1_001, 0, 200, 0], None));
        let (angle, millivolts) = readings.last();
        assert!((angle - tilt(5.0).0).abs() < 0.5, "{angle}");
        assert!((millivolts - 250.0).abs() < 0.01, "{millivolts}");
    }

    #[test]
    fn counts_scans_that_kernel_drops() {
        let scans = [0, 1, 2, 6, 7, 9];
        let readings = run(Faults::default(), &scans, 10);
        assert_eq!(counts(&readings), [10, 0, 6, 4]);
    }

    #[test]
    fn continues_after_refused_transactions() {
        // The start takes eleven.
        let readings = run(Faults { refused: 20..24, ..Faults::default() }, &[0], 99);
        assert_eq!((counts(&readings), readings.fault.get()), ([95, 4, 1, 0], None));
    }

    #[test]
    fn stops_if_sensor_does_not_answer() {
        let readings = run(Faults { refused: 20..u64::MAX, ..Faults::default() }, &[0], u64::MAX);
        assert_eq!(readings.fault.get(), Some(&Fault::Imu(ImuError::Bus(BusError::NoAcknowledge))));
        assert_eq!(readings.failures.load(Relaxed), u64::from(MAX_FAILURES));
    }

    #[test]
    fn stops_if_sensor_loses_settings() {
        let readings = run(Faults { reset_at: Some(50), ..Faults::default() }, &[0], 1_000);
        assert_eq!(readings.fault.get(), Some(&Fault::Imu(ImuError::Reset(register::POWER))));
        assert!(readings.measurements.load(Relaxed) <= CHECK_PERIOD);
    }

    #[test]
    fn stops_if_converter_is_unplugged() {
        let (mut converter, buffer) = converter();
        converter.scan(0, [1.0, 0.0]).unwrap();
        converter.unplug();
        let readings = Arc::<Readings>::default();
        let config = Config::new().virtual_time().until(Duration::from_secs(60));
        let imu = imu(Faults::default()).unwrap();
        app::run(config, imu, buffer, Arc::clone(&readings), u64::MAX).unwrap();
        assert_eq!(readings.fault.get(), Some(&Fault::ConverterClosed));
        assert_eq!(readings.scans.load(Relaxed), 1);
    }

    #[test]
    fn rejects_other_device_at_address() {
        let imu = imu(Faults { other_identity: Some(0x71), ..Faults::default() });
        assert_eq!(imu.err(), Some(ImuError::Identity(0x71)));
    }

    #[test]
    fn configures_converter_and_disables_it_at_end() {
        let (converter, buffer) = converter();
        let setting = |name: &str| converter.setting(name).unwrap();
        for (name, value) in [
            ("buffer/enable", "1"),
            ("buffer/length", "512"),
            ("buffer/watermark", "10"),
            ("current_timestamp_clock", "monotonic"),
            ("sampling_frequency", "1000"),
            ("scan_elements/in_timestamp_en", "1"),
            ("scan_elements/in_voltage0_en", "1"),
            ("scan_elements/in_voltage1_en", "0"),
        ] {
            assert_eq!(setting(name), value, "{name}");
        }
        drop(buffer);
        assert_eq!(setting("buffer/enable"), "0");
    }

    #[test]
    fn leaves_rate_to_named_trigger() {
        let converter = SimulatedConverter::create().unwrap();
        let settings = Settings { trigger: Some("timer"), ..CONVERTER };
        let _buffer = Buffer::open(converter.sysfs(), &converter.device(), &settings).unwrap();
        assert_eq!(converter.setting("trigger/current_trigger").unwrap(), "timer");
        assert_eq!(converter.setting("sampling_frequency").unwrap(), "100");
    }

    #[test]
    fn reports_missing_channel() {
        let converter = SimulatedConverter::create().unwrap();
        let settings = Settings { channels: &["in_voltage7"], ..CONVERTER };
        let error = Buffer::open(converter.sysfs(), &converter.device(), &settings).unwrap_err();
        assert!(
            matches!(error, BufferError::Io { path, .. } if path.ends_with("scan_elements/in_voltage7_en"))
        );
    }
}

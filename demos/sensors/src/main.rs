//! Reads an inertial sensor on I²C, and a converter of the IIO subsystem.
//!
//!     sensors /dev/i2c-1 iio:device0   # an MPU-6050, and a converter with `in_voltage0`
//!     sensors                          # simulated ones

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use punctual::Config;
use sensors::i2c::{AnyBus, Bus};
use sensors::iio::Buffer;
use sensors::imu::Imu;
use sensors::simulated::{Faults, SimulatedConverter, SimulatedImu};
use sensors::{CONVERTER, PERIOD, Readings, app};

fn main() -> ExitCode {
    run().unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::FAILURE
    })
}

fn run() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (bus, buffer, _converter) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            let mut converter = SimulatedConverter::create()?;
            let buffer = Buffer::open(converter.sysfs(), &converter.device(), &CONVERTER)?;
            let start = punctual::now().duration_since_epoch().as_nanos().cast_signed();
            for millisecond in 0..1_000 {
                converter.scan(start + 1_000_000 * millisecond, [250.0, 0.0])?;
            }
            (AnyBus(Box::new(SimulatedImu::new(Faults::default()))), buffer, Some(converter))
        }
        [bus, converter] => {
            let bus = Bus::open(Path::new(bus), (PERIOD.as_nanos() / 1_000_000) as u32).map_err(|error| {
                format!(
                    "cannot open {bus}: {error}; load `i2c-dev`, and check that you may read and write it"
                )
            })?;
            let sysfs = Path::new("/sys/bus/iio/devices").join(converter);
            let buffer = Buffer::open(&sysfs, &Path::new("/dev").join(converter), &CONVERTER)?;
            (AnyBus(Box::new(bus)), buffer, None)
        }
        _ => return Err("the arguments are [BUS CONVERTER], as in /dev/i2c-1 iio:device0".into()),
    };
    let imu = Imu::start(bus)?;
    let readings = Arc::<Readings>::default();
    let report = app::run(Config::from_env(), imu, buffer, Arc::clone(&readings), 1_000)?;
    print!("{report}");
    let (tilt, millivolts) = readings.last();
    println!("tilt {tilt:.1}°, {millivolts:.1} mV");
    let Readings { measurements, failures, scans, lost_scans, .. } = &*readings;
    let [measurements, failures, scans, lost_scans] =
        [measurements, failures, scans, lost_scans].map(|count| count.load(Relaxed));
    println!(
        "{measurements} measurements, {failures} failed transactions; {scans} scans, {lost_scans} lost by the kernel"
    );
    if let Some(fault) = readings.fault.get() {
        eprintln!("a sensor has failed: {fault}");
        return Ok(ExitCode::FAILURE);
    }
    Ok(report.exit_code().into())
}

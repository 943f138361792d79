//! The app on kernel threads, with a thread as the trigger of the converter.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use punctual::Config;
use sensors::i2c::AnyBus;
use sensors::iio::Buffer;
use sensors::imu::Imu;
use sensors::simulated::{Faults, SimulatedConverter, SimulatedImu};
use sensors::{CONVERTER, Readings, app};

#[test]
fn reads_both_sensors() {
    let mut converter = SimulatedConverter::create().unwrap();
    let buffer = Buffer::open(converter.sysfs(), &converter.device(), &CONVERTER).unwrap();
    let imu = Imu::start(AnyBus(Box::new(SimulatedImu::new(Faults::default())))).unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let until = Arc::clone(&is_over);
    let _alone = test_skip::alone();
    let trigger = punctual::background::spawn("trigger", move || {
        while !until.load(Relaxed) {
            let now = punctual::now().duration_since_epoch().as_nanos();
            converter.scan(now.cast_signed(), [250.0, 0.0]).unwrap();
            thread::sleep(Duration::from_millis(1));
        }
    });
    let readings = Arc::<Readings>::default();
    // Longer than the test takes on any machine.
    let config = Config::new().until(Duration::from_secs(120));
    app::run(config, imu, buffer, Arc::clone(&readings), 200).unwrap();
    is_over.store(true, Relaxed);
    trigger.unwrap().join().unwrap();
    // A busy machine skips releases, and takes fewer scans.
    assert_eq!(readings.measurements.load(Relaxed), 200, "{readings:?}");
    assert_eq!((readings.failures.load(Relaxed), readings.fault.get()), (0, None));
    assert!(readings.scans.load(Relaxed) >= 10, "{readings:?}");
    assert!((readings.last().1 - 250.0).abs() < 0.01, "{readings:?}");
}

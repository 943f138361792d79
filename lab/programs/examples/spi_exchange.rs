//! A periodic task exchanges a frame with a device on an SPI bus whose output is connected to its
//! input.
//!
//!     spi_exchange DEVICE COUNT
//!
//! Each frame differs from the previous one, and must be returned. The longest exchange goes to
//! stderr.

use std::env;
use std::process::ExitCode;

use punctual::Config;
use spidev::{SpiModeFlags, Spidev, SpidevOptions};

use punctual_lab::{Result, two};

const USAGE: &str = "DEVICE COUNT, as in /dev/spidev0.0 100";

fn main() -> Result<ExitCode> {
    let (device, count): (String, u32) = two(USAGE, env::args().skip(1))?;
    let mut spi = Spidev::open(&device).map_err(|error| format!("{device}: {error}"))?;
    spi.configure(
        &SpidevOptions::new()
            .bits_per_word(8)
            .max_speed_hz(10_000_000)
            .mode(SpiModeFlags::SPI_MODE_0)
            .build(),
    )?;
    let report = app::run(Config::from_env(), spi, count)?;
    println!("{} after {} exchanges", report.outcome, report.tasks[0].jobs);
    Ok(ExitCode::from(report.exit_code()))
}

#[punctual::app]
mod app {
    use std::time::{Duration, Instant};

    use spidev::{Spidev, SpidevTransfer};

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        spi: Spidev,
        left: u32,
        longest: Duration,
    }

    #[init]
    fn init(_: init::Context, spi: Spidev, count: u32) -> (Shared, Local) {
        (Shared {}, Local { spi, left: count.max(1), longest: Duration::ZERO })
    }

    #[task(priority = 2, period = 2.millis(), local = [spi, left, longest])]
    fn exchange(cx: exchange::Context) {
        let sent: [u8; 64] = std::array::from_fn(|n| (*cx.local.left as usize * 31 + n) as u8);
        let mut returned = [0; 64];
        let begun = Instant::now();
        let mut transfer = SpidevTransfer::read_write(&sent, &mut returned);
        cx.local.spi.transfer(&mut transfer).expect("the bus works");
        *cx.local.longest = begun.elapsed().max(*cx.local.longest);
        assert_eq!(sent, returned, "the returned bytes differ from the sent ones");

        *cx.local.left -= 1;
        if *cx.local.left == 0 {
            eprintln!("longest exchange: {} us", cx.local.longest.as_micros());
            punctual::shutdown();
        }
    }
}

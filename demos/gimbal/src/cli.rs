//! The command line.

use clap::{ArgGroup, Parser};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The longest run, in seconds: its records must fit into memory reserved beforehand.
pub const MAX_SECONDS: f64 = 3600.0;

/// Control a simulated two-axis camera gimbal in real time and report how well it follows its
/// setpoints
#[derive(Debug, Clone, PartialEq, Parser)]
#[command(version, group = ArgGroup::new("source").args(["setpoints", "stdin", "udp", "transports"]))]
pub struct Args {
    /// Length of the run in seconds, up to 3600
    #[arg(long, value_name = "SECONDS", default_value = "10")]
    #[arg(allow_hyphen_values = true, value_parser = seconds)]
    pub seconds: f64,

    /// Write an HTML report
    #[arg(long, value_name = "FILE.html", value_parser = output_file)]
    pub report: Option<PathBuf>,

    /// Write the numbers of the report as JSON
    #[arg(long, value_name = "FILE", value_parser = output_file)]
    pub json: Option<PathBuf>,

    /// Record angles at 100 Hz, all currents and received setpoints to a new file, for MCAP viewers
    /// and `punctual replay`
    #[arg(long, value_name = "FILE.mcap", value_parser = output_file)]
    pub mcap: Option<PathBuf>,

    /// Run in virtual time: deterministic, as fast as possible, no real-time privileges needed
    #[arg(long = "virtual")]
    pub virtual_time: bool,

    /// Read setpoints from a CSV file with the header time_s,pan_rad,tilt_rad
    #[arg(long, value_name = "FILE.csv")]
    pub setpoints: Option<PathBuf>,

    /// Read setpoints from standard input, as lines `pan_rad,tilt_rad` or `time_s,pan_rad,tilt_rad`
    #[arg(long)]
    pub stdin: bool,

    /// Receive setpoints as UDP datagrams, at 127.0.0.1:9870 if no address is given:
    /// geometry_msgs/Vector3 in CDR, x pan, y tilt
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "127.0.0.1:9870", conflicts_with = "virtual_time")]
    pub udp: Option<SocketAddr>,

    /// Admit transports, such as `punctual-ros2 gimbal`: separate processes that receive all topics
    /// and send setpoints to /setpoint
    #[arg(long, conflicts_with = "virtual_time")]
    pub transports: bool,

    /// Control the gimbal at an SPI device, /dev/spidevB.C, or at the socket of a gimbal-plant,
    /// instead of a simulated one in this process
    #[arg(long, value_name = "DEVICE", conflicts_with = "virtual_time")]
    pub spi: Option<PathBuf>,

    /// The SPI mode of --spi: polarity and phase of its clock
    #[arg(long, value_name = "MODE", default_value = "0", requires = "spi")]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=3))]
    pub spi_mode: u8,

    /// The speed of --spi, in bit/s
    #[arg(long, value_name = "HZ", default_value = "10000000", requires = "spi")]
    #[arg(value_parser = clap::value_parser!(u32).range(100_000..))]
    pub spi_hz: u32,

    /// Let `punctual set gimbal` change the gains, starting with those of a TOML file if one is
    /// given
    #[arg(long, value_name = "FILE.toml", num_args = 0..=1, require_equals = true)]
    pub tune: Option<Option<PathBuf>>,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number; write a time, such as 2.5".to_owned())?;
    if seconds > 0.0 && seconds <= MAX_SECONDS {
        Ok(seconds)
    } else {
        Err(format!("must be more than 0 and at most {MAX_SECONDS}"))
    }
}

/// Checks, without creating the file, that it can be written: a mistyped directory must not waste a
/// run.
fn output_file(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if path.file_name().is_none() || path.is_dir() {
        return Err("not the name of a file; give one".to_owned());
    }
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    if !directory.is_dir() {
        return Err(format!("there is no directory {}; create it first", directory.display()));
    }
    match punctual_files::check(&path) {
        Ok(()) => Ok(path),
        Err(error) => Err(format!("{error}; choose a directory that this user can write to")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(args: &[&str]) -> Result<Args, String> {
        Args::try_parse_from([&["gimbal"], args].concat()).map_err(|error| error.to_string())
    }

    #[test]
    fn keeps_definition_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn runs_ten_seconds_in_real_time_by_default() {
        let args = parse(&[]).unwrap();
        assert_eq!(args.seconds, 10.0);
        assert!(!args.virtual_time && !args.stdin);
        assert_eq!((args.report, args.json, args.mcap, args.setpoints), (None, None, None, None));
        assert_eq!((args.udp, args.tune, args.transports), (None, None, false));
    }

    #[test]
    fn encodes_every_value() {
        let args = [
            "--seconds",
            "0.5",
            "--virtual",
            "--stdin",
            "--report",
            "r.html",
            "--json",
            "./r.json",
            "--mcap",
            "r.mcap",
        ];
        let args = parse(&args).unwrap();
        assert!(args.virtual_time && args.stdin);
        assert_eq!(args.seconds, 0.5);
        assert_eq!(args.report.as_deref(), Some(Path::new("r.html")));
        assert_eq!(args.json.as_deref(), Some(Path::new("./r.json")));
        assert_eq!(args.mcap.as_deref(), Some(Path::new("r.mcap")));
    }

    #[test]
    fn rejects_invalid_lengths() {
        assert_eq!(parse(&["--seconds", "3600"]).unwrap().seconds, 3600.0);
        for bad in ["0", "-1", "3600.1", "inf", "NaN", "1e999"] {
            let error = parse(&["--seconds", bad]).unwrap_err();
            assert!(error.contains("must be more than 0 and at most 3600"), "{error}");
        }
        assert!(parse(&["--seconds", "ten"]).unwrap_err().contains("not a number"));
    }

    #[test]
    fn requires_output_directories() {
        let error = parse(&["--json", "no/such/directory/x.json"]).unwrap_err();
        assert!(error.contains("there is no directory no/such/directory"), "{error}");
        assert!(parse(&["--report", "/"]).unwrap_err().contains("not the name of a file"));
        assert!(parse(&["--report", "."]).is_err());
        assert!(parse(&["--report", ""]).is_err());
        let inside = std::env::temp_dir().join("gimbal.html");
        assert!(parse(&["--report", inside.to_str().unwrap()]).is_ok());
    }

    #[test]
    fn rejects_two_sources_of_setpoints() {
        let error = parse(&["--stdin", "--setpoints", "steps.csv"]).unwrap_err();
        assert!(error.contains("cannot be used with"), "{error}");
    }
}

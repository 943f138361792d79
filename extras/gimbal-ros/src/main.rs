//! The gimbal of `demos/gimbal` as a node of ROS 2 or Zenoh. `punctual-ros1` attaches to the gimbal itself.
//!
//! ```text
//! cargo run --release -p gimbal-ros --features ros2 -- --ros2 --seconds 60
//! ```

use std::error::Error;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{ArgGroup, CommandFactory, Parser};
use gimbal::cli::Args;
use gimbal::program;
use gimbal::topics::Network;
use gimbal::tuning::Factors;
use punctual_bridge::messages::Vector3;
use punctual_bridge::{Bridge, Subscription, TuningServer};

/// Control a simulated two-axis camera gimbal as a node of a network, and report how well it
/// follows its setpoints
#[derive(Debug, Parser)]
#[command(name = "gimbal-ros", version, group = ArgGroup::new("network").args(["ros2", "zenoh"]))]
struct Options {
    #[command(flatten)]
    gimbal: Args,

    /// Run as the node `gimbal` of ROS 2: subscribes to /setpoint, publishes /angles, /target and
    /// /currents, and with --tune provides the gains as parameters (needs the feature ros2)
    #[arg(long, conflicts_with_all = ["setpoints", "stdin", "udp", "transports", "virtual_time"])]
    ros2: bool,

    /// Run as a node of Zenoh at this endpoint, by default tcp/127.0.0.1:7447, or one configured by
    /// a Zenoh file: subscribes to setpoint, publishes angles, target and currents (needs the
    /// feature zenoh)
    #[arg(long, value_name = "tcp/ADDRESS:PORT|FILE.json5", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "tcp/127.0.0.1:7447")]
    #[arg(conflicts_with_all = ["setpoints", "stdin", "udp", "transports", "virtual_time"])]
    zenoh: Option<String>,
}

fn main() -> ExitCode {
    let parsed = Options::try_parse().and_then(|options| Ok((network(&options)?, options.gimbal)));
    match parsed {
        Ok((network, args)) => program::run(&args, network),
        Err(message) => program::tell(&message),
    }
}

/// Returns the network selected on the command line.
fn network(options: &Options) -> Result<Option<Box<dyn Network>>, clap::Error> {
    let chosen = match options {
        Options { ros2: true, .. } => Node::Ros2,
        Options { zenoh: Some(place), .. } => Node::Zenoh(place.clone()),
        _ => return Ok(None),
    };
    match chosen.feature() {
        (_, true) => Ok(Some(Box::new(chosen))),
        (feature, false) => Err(Options::command().error(
            ErrorKind::InvalidValue,
            format!("--{feature}: this program was built without it; add `--features {feature}` to `cargo run -p gimbal-ros`"),
        )),
    }
}

#[derive(Debug)]
enum Node {
    Ros2,
    Zenoh(String),
}

impl Node {
    /// Returns the required feature, and whether this program was built with it.
    const fn feature(&self) -> (&'static str, bool) {
        match self {
            Self::Ros2 => ("ros2", cfg!(feature = "ros2")),
            Self::Zenoh(_) => ("zenoh", cfg!(feature = "zenoh")),
        }
    }
}

impl Network for Node {
    fn source(&self) -> String {
        match self {
            Self::Ros2 => "ROS 2, /setpoint".into(),
            Self::Zenoh(place) => format!("Zenoh, {place}, setpoint"),
        }
    }

    fn connect(
        self: Box<Self>,
        bridge: Bridge,
        setpoints: Subscription<Vector3>,
        tuning: Option<&TuningServer<Factors>>,
    ) -> Result<Bridge, Box<dyn Error + Send + Sync>> {
        let (feature, _) = self.feature();
        match *self {
            #[cfg(feature = "ros2")]
            Self::Ros2 => {
                let node = punctual_ros2::Ros2::connect("gimbal")?.subscribe(setpoints)?;
                Ok(bridge.sink(match tuning {
                    Some(tuning) => node.parameters(tuning)?,
                    None => node,
                }))
            }
            #[cfg(feature = "zenoh")]
            Self::Zenoh(place) => {
                let is_file = place.ends_with(".json5") || place.ends_with(".json");
                let node = match is_file {
                    true => punctual_zenoh::Zenoh::configured(&place),
                    false => punctual_zenoh::Zenoh::listen(&place),
                };
                Ok(bridge.sink(node?.subscribe(setpoints)?))
            }
            #[allow(unreachable_patterns, reason = "reached without the feature of the node")]
            _ => {
                let _ = (bridge, setpoints, tuning);
                Err(format!("this program was built without the feature {feature}").into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Options, String> {
        Options::try_parse_from([&["gimbal-ros"], args].concat()).map_err(|error| error.to_string())
    }

    #[test]
    fn keeps_definition_consistent() {
        Options::command().debug_assert();
    }

    #[test]
    fn rejects_two_sources_of_setpoints() {
        for args in
            [["--ros2", "--transports"], ["--ros2", "--zenoh"], ["--ros2", "--udp"], ["--zenoh", "--virtual"]]
        {
            let error = parse(&args).unwrap_err();
            assert!(error.contains("cannot be used with"), "{args:?}: {error}");
        }
        assert_eq!(parse(&["--zenoh"]).unwrap().zenoh.as_deref(), Some("tcp/127.0.0.1:7447"));
    }

    #[test]
    fn names_feature_for_network() {
        for flag in ["--ros2", "--zenoh"] {
            let options = parse(&[flag]).unwrap();
            match network(&options) {
                Ok(network) => assert!(network.is_some_and(|network| network.source().contains("setpoint"))),
                Err(error) => {
                    let error = error.to_string();
                    assert!(error.contains(&format!("add `--features {}`", &flag[2..])), "{error}");
                }
            }
        }
        assert!(network(&parse(&[]).unwrap()).unwrap().is_none());
    }
}

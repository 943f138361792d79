//! The command line of `punctual top`.

use std::net::SocketAddr;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::output::Json;
use crate::parse::time;

/// Watch running apps: jobs, jitter, response and execution times, misses
///
/// Shows the apps of this user on a terminal, where `?` lists the keys, and as lines of text
/// otherwise. Apps export their figures unless `Config::metrics(false)` or PUNCTUAL_METRICS=0 is
/// set, or they run in virtual time; watching costs them nothing. An app with capabilities exports
/// them to root and to users who have as many.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual top                            this user's apps; Tab selects the next
  sudo punctual top my-app                by name, program or process
  punctual top --count 1 --sort response  one table, largest response time first
  punctual top --json | jq .tasks         an object each second
  punctual top --prometheus               at http://127.0.0.1:9753/metrics")]
pub(crate) struct Top {
    /// Name of the app or of its program, or its process ID [default: the first]
    pub(crate) app: Option<String>,

    /// Time between two updates
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub(crate) every: Duration,

    /// End after this many updates
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,

    #[command(flatten)]
    pub(crate) json: Json,

    /// Serve the figures of all apps to Prometheus instead, by HTTP
    #[arg(
        long, value_name = "ADDRESS:PORT", num_args = 0..=1, default_missing_value = "127.0.0.1:9753",
        require_equals = true, value_parser = address, conflicts_with_all = ["json", "count", "sort"]
    )]
    pub(crate) prometheus: Option<SocketAddr>,

    /// The order of tasks
    #[arg(long, value_name = "COLUMN", default_value = "level")]
    pub(crate) sort: Order,
}

/// The order of tasks. Values other than names are sorted largest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Order {
    Level,
    Task,
    Rate,
    Jitter,
    Response,
    Execution,
    Misses,
}

impl Order {
    /// Returns the next one, in the order of the columns.
    pub(crate) fn next(self) -> Self {
        let all = Self::value_variants();
        let at = all.iter().position(|order| *order == self).unwrap_or(0);
        all[(at + 1) % all.len()]
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "write a numeric address and a port, such as 127.0.0.1:9753".into())
}

/// Parses the time between two updates.
fn interval(text: &str) -> Result<Duration, String> {
    match time(text)? {
        interval if interval < Duration::from_millis(50) => Err("give at least 50ms".into()),
        interval if interval > Duration::from_secs(86_400) => Err("give at most 86400s".into()),
        interval => Ok(interval),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Command, Punctual};

    fn top(line: &str) -> Result<Top, clap::Error> {
        match Punctual::try_parse_from(line.split(' '))?.command {
            Command::Top(top) => Ok(top),
            _ => panic!("{line}"),
        }
    }

    #[test]
    fn serves_on_loopback_by_default() {
        assert_eq!(top("punctual top").unwrap().prometheus, None);
        let served = |line: &str| top(line).unwrap().prometheus.unwrap().to_string();
        assert_eq!(served("punctual top --prometheus"), "127.0.0.1:9753");
        assert_eq!(served("punctual top --prometheus=[::]:80"), "[::]:80");
        // The name of an app is not taken for an address.
        assert_eq!(top("punctual top --prometheus app").unwrap().app.as_deref(), Some("app"));
    }

    #[test]
    fn names_flag_of_bad_value() {
        for (line, flag) in [
            ("punctual top --every 10ms", "--every"),
            ("punctual top --every 1", "--every"),
            ("punctual top --count 0", "--count"),
            ("punctual top --sort name", "--sort"),
            ("punctual top --prometheus=here", "--prometheus"),
            ("punctual top --prometheus --json", "--prometheus"),
        ] {
            let error = top(line).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{line}");
            assert!(error.to_string().contains(flag), "{line}: {error}");
        }
    }

    #[test]
    fn every_order_follows_another() {
        let orders: Vec<_> =
            std::iter::successors(Some(Order::Level), |order| Some(order.next())).take(8).collect();
        assert_eq!(orders[7], Order::Level);
        assert!(orders[1..7].iter().all(|order| *order != Order::Level));
    }
}

//! The command lines of `punctual get` and `punctual set`.

use std::path::PathBuf;

use clap::Args;

use crate::output::Json;

/// Show the parameters of a running app: values, units, ranges
///
/// Without an app, lists this user's apps that have parameters.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual get                              the apps that have parameters
  punctual get my-app                       all parameters of one
  punctual get my-app pid.kp                the value of one parameter
  punctual get my-app --toml > gains.toml   for its start or punctual set --file")]
pub(crate) struct Get {
    /// Name of the app or of its program, or its process ID
    pub(crate) app: Option<String>,

    /// Only the values of these parameters, one per line
    #[arg(value_name = "NAME", conflicts_with_all = ["toml", "json"])]
    pub(crate) names: Vec<String>,

    /// Print the current values as a file in TOML
    #[arg(long, requires = "app", conflicts_with = "json")]
    pub(crate) toml: bool,

    #[command(flatten)]
    pub(crate) json: Json,
}

/// Set parameters of a running app: all that are given, or none
///
/// The app compares each value with its range before any of them applies. Values that are out of
/// range or not numbers, and unknown names, are rejected with the reason. Only the user of the app
/// can set them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual set my-app pid.kp=1.2 pid.ki=0.05   two values, effective together
  punctual set my-app --file gains.toml        the values of a file")]
pub(crate) struct Set {
    /// Name of the app or of its program, or its process ID
    pub(crate) app: String,

    /// Parameters to set
    #[arg(value_name = "NAME=VALUE", value_parser = assignment, allow_hyphen_values = false)]
    pub(crate) assignments: Vec<(String, String)>,

    /// Also set the parameters in a file in TOML
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) file: Option<PathBuf>,
}

fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("it is not NAME=VALUE, such as pid.kp=1.2")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

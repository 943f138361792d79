//! Writes the package of some apps: `punctual-fuzz DIRECTORY WORKSPACE EXECUTOR SEED..`, where the executor is `any`, `one`,
//! `two`, `poll` or `global`.

use std::path::Path;
use std::process::ExitCode;

use punctual_fuzz::generate::{Executor, choose, write};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("punctual-fuzz: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[String]) -> Result<(), String> {
    let [directory, workspace, executor, seeds @ ..] = words else {
        return Err("usage: punctual-fuzz DIRECTORY WORKSPACE EXECUTOR SEED..".to_owned());
    };
    let executor: Option<Executor> = match &**executor {
        "any" => None,
        name => Some(name.parse()?),
    };
    let model = |seed: &String| match seed.parse() {
        Ok(seed) => Ok(choose(seed, executor)),
        Err(error) => Err(format!("{seed}: {error}")),
    };
    let models = seeds.iter().map(model).collect::<Result<Vec<_>, _>>()?;
    write(Path::new(directory), Path::new(workspace), &models)
        .map_err(|error| format!("{directory}: {error}"))
}

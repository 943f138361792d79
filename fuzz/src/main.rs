//! Writes the package of some apps.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use punctual_fuzz::generate::{Executor, Model, choose, source};

/// Writes a package of random apps.
#[derive(Parser)]
struct Options {
    /// Directory of the package
    directory: PathBuf,
    /// Root of Punctual's workspace
    workspace: PathBuf,
    /// Seeds of the apps
    seeds: Vec<u64>,
    /// Executor of the apps [default: one at random for each]
    #[arg(long)]
    executor: Option<Executor>,
}

fn main() -> ExitCode {
    let Options { directory, workspace, seeds, executor } = Options::parse();
    let models: Vec<Model> = seeds.into_iter().map(|seed| choose(seed, executor)).collect();
    match write_package(&directory, &workspace, &models) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("punctual-fuzz: {}: {error}", directory.display());
            ExitCode::FAILURE
        }
    }
}

/// Writes a package with these apps, one module each, into `directory`, whose old sources are
/// removed. `workspace` is the root of Punctual's workspace.
fn write_package(directory: &Path, workspace: &Path, models: &[Model]) -> io::Result<()> {
    let sources = directory.join("src");
    match fs::remove_dir_all(&sources) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => fs::create_dir_all(&sources)?,
    }
    let (mut modules, mut names) = (String::new(), Vec::new());
    for model in models {
        let name = format!("app_{}", model.seed);
        fs::write(sources.join(&name).with_extension("rs"), source(model))?;
        modules += &format!("mod {name};\n");
        names.push(format!("&{name}::APP"));
    }
    let main = format!(
        "#![forbid(unsafe_code)]\n#![allow(warnings)]\n\n{modules}\nstatic APPS: &[&punctual_fuzz::app::App] = &[{}];\n\nfn main() \
         -> std::process::ExitCode {{\n    punctual_fuzz::runner::main(APPS)\n}}\n",
        names.join(", ")
    );
    fs::write(sources.join("main.rs"), main)?;
    fs::write(directory.join("Cargo.toml"), manifest(workspace))?;
    // Cargo adds this package, and removes packages that it does not need.
    fs::copy(workspace.join("Cargo.lock"), directory.join("Cargo.lock"))?;
    Ok(())
}

/// Returns the manifest. Its profiles are those of the workspace, so that dependencies are compiled
/// once.
fn manifest(workspace: &Path) -> String {
    let path = |name: &str| format!("{:?}", workspace.join(name));
    format!(
        "[package]\nname = \"fuzz-apps\"\nedition = \"2024\"\npublish = false\n\n[workspace]\n\n[dependencies]\npunctual = {{ path \
         = {} }}\npunctual-fuzz = {{ path = {} }}\n\n[profile.dev]\ndebug = \"line-tables-only\"\n\n\
         [profile.dev.package.\"*\"]\ndebug = false\n",
        path("crates/punctual"),
        path("fuzz")
    )
}

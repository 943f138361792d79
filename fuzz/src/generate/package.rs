//! The package with the apps of one lot: one program, with a module for each app.

use std::fs;
use std::io;
use std::path::Path;

use super::{Model, source};

/// Writes the package into `directory`, in which nothing else is kept. `workspace` is the root of that of Punctual.
pub fn write(directory: &Path, workspace: &Path, models: &[Model]) -> io::Result<()> {
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
    // Cargo adds this package and drops what it does not need.
    fs::copy(workspace.join("Cargo.lock"), directory.join("Cargo.lock"))?;
    Ok(())
}

/// The profiles are those of the workspace, so that in its target directory nothing from a registry is compiled again.
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

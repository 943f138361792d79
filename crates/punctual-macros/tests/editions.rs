//! Apps compile in every edition of the language: one `cargo check` of a workspace with a package for each.
//!
//! Generated code has the edition of the package that it is generated for, which decides keywords and paths.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use punctual_process::child::BoundedCommand;

const EDITIONS: [&str; 4] = ["2015", "2018", "2021", "2024"];

/// Limit for a check of Punctual from scratch on a slow machine.
const LIMIT: Duration = Duration::from_secs(1800);

/// The parts of an app that have the same form in every edition. `GEN` stands for a name that is a keyword since 2024.
const APP: &str = "
    use punctual::prelude::*;

    const CAPACITY: usize = 3;
    const PERIOD: punctual::Duration = punctual::Duration::from_micros(500);
    const BUDGET: punctual::Duration = punctual::Duration::from_micros(100);

    #[shared]
    struct Shared {
        total: u32,
        table: [u32; 2],
    }

    #[local]
    struct Local {
        GEN: u32,
    }

    #[init]
    fn init(_: self::init::Context) -> (self::Shared, self::Local) {
        GEN::spawn(1).unwrap();
        (Shared { total: 1, table: [1, 2] }, Local { GEN: 2 })
    }

    #[task(priority = 2, capacity = CAPACITY, shared = [total, &table], local = [GEN, more: u32 = 3])]
    fn GEN(mut cx: GEN::Context, number: u32) {
        *cx.local.GEN += *cx.local.more + number + cx.shared.table[1];
        cx.shared.total.lock(|total| *total += 1);
        let _ = GEN::spawn_after(1.millis(), 2);
    }

    #[task(period = PERIOD, deadline = 400.micros(), budget = BUDGET, shared = [total])]
    fn tick(mut cx: tick::Context) {
        cx.shared.total.lock(|total| *total += 1);
    }

    #[idle]
    fn idle(_: idle::Context) {
        punctual::shutdown();
    }

    #[shutdown(shared = [total])]
    fn end(cx: end::Context) {
        println!(\"{}\", cx.shared.total);
    }
";

/// An async task, and a path that begins with a crate, which the edition of 2015 does not have.
const ASYNC: &str = "
    #[task(shared = [total])]
    async fn wait(mut cx: wait::Context) {
        punctual::delay(1.millis()).await;
        cx.shared.total.lock(|total| *total += ::core::mem::size_of::<u32>() as u32);
    }
";

fn program(edition: &str) -> String {
    let name = if edition == "2024" { "r#gen" } else { "gen" };
    let (external, waits) = if edition == "2015" { ("extern crate punctual;", "") } else { ("", ASYNC) };
    format!(
        "#![deny(warnings)]\n{external}\n#[punctual::app]\nmod app {{{}{waits}}}\n",
        APP.replace("GEN", name)
    )
}

/// Writes the workspace.
fn write(place: &Path, punctual: &Path) -> std::io::Result<()> {
    let members = EDITIONS.map(|edition| format!("\"edition{edition}\"")).join(", ");
    let workspace = format!(
        "[workspace]\nresolver = \"3\"\nmembers = [{members}]\n\n[workspace.dependencies]\npunctual = {{ path = {punctual:?} }}\n"
    );
    fs::create_dir_all(place)?;
    fs::write(place.join("Cargo.toml"), workspace)?;
    // The versions that have been downloaded for this workspace.
    fs::copy(punctual.join("../../Cargo.lock"), place.join("Cargo.lock"))?;
    for edition in EDITIONS {
        let package = place.join(format!("edition{edition}"));
        let manifest = format!(
            "[package]\nname = \"edition{edition}\"\nversion = \"0.0.0\"\nedition = \"{edition}\"\n\n\
             [dependencies]\npunctual = {{ workspace = true }}\n"
        );
        fs::create_dir_all(package.join("src"))?;
        fs::write(package.join("Cargo.toml"), manifest)?;
        fs::write(package.join("src/main.rs"), program(edition))?;
    }
    Ok(())
}

#[test]
fn apps_compile_in_every_edition() {
    let place = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("editions");
    let punctual = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("punctual");
    write(&place, &punctual).expect("the target directory can be written");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["check", "--workspace", "--offline", "--keep-going"]).current_dir(&place);
    // The flags of this build may deny what warnings in dependencies are.
    cargo.env("CARGO_TARGET_DIR", place.join("target")).env_remove("RUSTFLAGS");
    let output = cargo.output_within(LIMIT).expect("cargo can be run");
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{messages}");
    for edition in EDITIONS {
        assert!(messages.contains(&format!("edition{edition} v0.0.0")), "{messages}");
    }
}

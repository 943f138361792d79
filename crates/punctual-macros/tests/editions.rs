//! Apps compile in every edition of the language, and with Punctual under another name: one `cargo
//! check` of a workspace with a package for each edition.
//!
//! Generated code has the edition of the package that it is generated for, which decides keywords
//! and paths.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use punctual_process::child::BoundedCommand;

use crate::{FLAGS, LIMIT};

const EDITIONS: [&str; 4] = ["2015", "2018", "2021", "2024"];

/// The parts of an app that have the same form in every edition. `GEN` stands for a name that is a
/// keyword since 2024.
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

/// Another crate that exports Punctual under another name.
const REEXPORT: &str = "pub use punctual as real_time;";

/// The dependencies of that crate: those of the programs in `ui/`, which select the features of
/// Punctual's own dependencies.
const SAME_FEATURES: &str = "punctual = { workspace = true }\npunctual-bridge = { workspace = true }\n";

/// Returns the app, which finds Punctual at `path` and has `attribute`.
fn program(edition: &str, path: &str, attribute: &str) -> String {
    let name = if edition == "2024" { "r#gen" } else { "gen" };
    let krate = path.split(':').next().expect("a path begins with a crate");
    let (external, waits) =
        if edition == "2015" { (format!("extern crate {krate};"), "") } else { (String::new(), ASYNC) };
    let app = APP.replace("GEN", name).replace("use punctual::prelude", &format!("use {path}::prelude"));
    // In the module, the name of the crate is the same.
    let alias = if krate == "punctual" { String::new() } else { format!("use {path} as punctual;") };
    format!("#![deny(warnings, dead_code)]\n{external}\n#[{attribute}]\nmod app {{{alias}{app}{waits}}}\n")
}

/// Writes a file unless it has this content, so that cargo does not check its package again.
fn update(path: &Path, content: &str) -> std::io::Result<()> {
    if fs::read(path).is_ok_and(|before| before == content.as_bytes()) {
        return Ok(());
    }
    fs::write(path, content)
}

/// Writes the workspace.
fn write(place: &Path, punctual: &Path) -> std::io::Result<()> {
    let bridge = punctual.with_file_name("punctual-bridge");
    let members = EDITIONS.map(|edition| format!("\"edition{edition}\"")).join(", ");
    let workspace = format!(
        "[workspace]\nresolver = \"3\"\nmembers = [\"reexport\", {members}]\n\n[workspace.dependencies]\n\
         punctual = {{ path = {punctual:?} }}\nreexport = {{ path = \"reexport\" }}\n\
         punctual-bridge = {{ path = {bridge:?}, features = [\"parameters\"] }}\n"
    );
    fs::create_dir_all(place)?;
    update(&place.join("Cargo.toml"), &workspace)?;
    // The versions that have been downloaded for this workspace.
    fs::copy(punctual.join("../../Cargo.lock"), place.join("Cargo.lock"))?;
    for edition in EDITIONS {
        let package = place.join(format!("edition{edition}"));
        let dependencies = "punctual = { workspace = true }\nreexport = { workspace = true }\n";
        write_package(&package, edition, dependencies)?;
        fs::create_dir_all(package.join("src/bin"))?;
        update(&package.join("src/main.rs"), &program(edition, "punctual", "punctual::app"))?;
        let (path, attribute) =
            ("reexport::real_time", "reexport::real_time::app(crate = reexport::real_time)");
        update(&package.join("src/bin/renamed.rs"), &program(edition, path, attribute))?;
    }
    let package = place.join("reexport");
    write_package(&package, "2024", SAME_FEATURES)?;
    update(&package.join("src/lib.rs"), REEXPORT)
}

/// Writes the manifest of a package named after its directory, and creates `src`.
fn write_package(package: &Path, edition: &str, dependencies: &str) -> std::io::Result<()> {
    let name = package.file_name().and_then(|name| name.to_str()).expect("the names are text");
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"{edition}\"\n\n[dependencies]\n{dependencies}"
    );
    fs::create_dir_all(package.join("src"))?;
    update(&package.join("Cargo.toml"), &manifest)
}

#[test]
fn apps_compile_in_every_edition() {
    let place = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("editions");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("tests").join("trybuild");
    let punctual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../punctual");
    write(&place, &punctual).expect("the target directory can be written");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // With `--verbose`, cargo also lists the packages that have not changed since the last check.
    cargo.args(["check", "--workspace", "--offline", "--keep-going", "--verbose"]).current_dir(&place);
    // As trybuild does.
    cargo.args(["--target", "host-tuple"]);
    cargo.env("CARGO_TARGET_DIR", target).env("CARGO_INCREMENTAL", "0").env(FLAGS.0, FLAGS.1);
    let output = cargo.output_within(LIMIT).expect("cargo can be run");
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{messages}");
    for edition in EDITIONS {
        assert!(messages.contains(&format!("edition{edition} v0.0.0")), "{messages}");
    }
}

//! `punctual trace convert`: makes a trace.dat of what an interrupted recording left, or of a
//! damaged file.

use std::fs;

use punctual_files::NewFile;
use punctual_trace::convert;
use punctual_trace::write::dat;

use super::Failure;
use super::args::Convert;
use super::outputs::identity;
use crate::output::message;

pub(crate) fn run(arguments: &Convert) -> Result<u8, Failure> {
    let Convert { input, output, remove } = arguments;
    let unusable =
        |error: &dyn std::fmt::Display| Failure::usage(format!("--output {}: {error}", output.display()));
    if identity(output).is_some_and(|file| identity(input) == Some(file)) {
        return Err(unusable(&"this is the input; choose another name"));
    }
    let found = fs::metadata(input);
    let found = found.map_err(|error| Failure::usage(format!("{}: {error}", input.display())))?;
    let is_directory = found.is_dir();
    NewFile::create(output).map_err(|error| unusable(&error))?;
    if *remove && !is_directory {
        return Err(Failure::usage(format!(
            "--remove: {} is not a directory; remove it by hand",
            input.display()
        )));
    }
    match (is_directory, remove) {
        (true, true) => dat::finish(input, output)?,
        (true, false) => dat::write(input, output)?,
        (false, _) => {
            let damage = convert::convert(input, output)?;
            damage.iter().for_each(|what| message!("warning: {}: {what}", input.display()));
        }
    }
    let bytes = fs::metadata(output)?.len();
    message!(
        "{}: {:.1} MB; print its report: punctual trace report {0}",
        output.display(),
        bytes as f64 / 1e6
    );
    Ok(0)
}

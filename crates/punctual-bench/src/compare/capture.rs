//! Runs in the captured output of a board, which ends them with a checksum: a serial line may lose
//! or change bytes.

/// The beginning of a run, as boards print it.
const BEGINNING: &str = "{\"format\": \"punctual-bench\"";

/// Begins the line with the number of bytes and their CRC-32.
const CHECKSUM: &str = "\nchecksum: ";

/// Returns the JSON of a run in the output of a board, or `None` if the text is no such output.
///
/// # Errors
/// Returns a message if bytes of the run were lost or changed.
pub(super) fn extract(text: &str) -> Result<Option<String>, String> {
    let text = text.replace('\r', "");
    let Some(begin) = text.find(BEGINNING) else { return Ok(None) };
    let Some(end) = text[begin..].find(CHECKSUM) else { return Ok(None) };
    let (json, checksum) = text[begin..].split_at(end + 1);
    let expected = format!("checksum: {} bytes, CRC-32 {:08x}", json.len(), crc32(json.as_bytes()));
    let line = checksum.lines().next().unwrap_or_default();
    if line == expected {
        return Ok(Some(json.to_owned()));
    }
    Err(format!(
        "bytes were lost or changed: the board printed `{line}`, and `{expected}` arrived; capture it again"
    ))
}

/// Returns the CRC-32 of Ethernet.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ if crc & 1 != 0 { 0xEDB8_8320 } else { 0 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = "{\"format\": \"punctual-bench\",\n\"version\": 1}\n";

    fn captured() -> String {
        let crc = crc32(JSON.as_bytes());
        let text = format!("punctual-boot\n{JSON}checksum: {} bytes, CRC-32 {crc:08x}\nbye\n", JSON.len());
        text.replace('\n', "\r\n")
    }

    #[test]
    fn extracts_a_run_from_the_output_of_a_board() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(extract(&captured()), Ok(Some(JSON.to_owned())));
        assert_eq!(extract(JSON), Ok(None), "a file of `punctual bench --json` has no checksum");
        assert_eq!(extract("something else"), Ok(None));
    }

    #[test]
    fn rejects_lost_and_changed_bytes() {
        for changed in [captured().replacen("version", "versiom", 1), captured().replacen(": 1", ":1", 1)] {
            assert!(extract(&changed).unwrap_err().starts_with("bytes were lost or changed"), "{changed}");
        }
    }
}

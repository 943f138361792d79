//! Extracts the bare kernel from the image of a distribution.
//!
//! QEMU boots the bare ELF file directly, by its PVH note. That skips the firmware and the
//! decompressor, which take most of the boot time in emulation, and the randomization of the
//! kernel's address.

use xtask_support::Result;

/// The compression of the kernel inside an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    Xz,
    Zstd,
}

impl Packing {
    /// Returns the program that unpacks it.
    pub(crate) fn tool(self) -> &'static str {
        match self {
            Self::Xz => "xz",
            Self::Zstd => "zstd",
        }
    }
}

/// Returns `true` for a bare kernel for 64-bit ARM, by the magic number of that boot protocol.
pub(crate) fn is_arm64(image: &[u8]) -> bool {
    image.get(0x38..0x3c) == Some(b"ARM\x64")
}

/// Finds the compressed kernel in a bzImage by the header of the x86 boot protocol.
pub(crate) fn find(image: &[u8]) -> Result<(Packing, &[u8])> {
    let word = |at: usize| -> Option<usize> {
        let bytes = image.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    };
    if image.get(0x202..0x206) != Some(b"HdrS") {
        return Err("not a bzImage: no setup header".into());
    }
    let sectors = match image[0x1f1] {
        0 => 4,
        sectors => usize::from(sectors),
    };
    let payload = word(0x248).zip(word(0x24c)).and_then(|(offset, length)| {
        let begin = ((sectors + 1) * 512).checked_add(offset)?;
        // The last four bytes are the uncompressed size.
        image.get(begin..begin.checked_add(length)?.checked_sub(4)?)
    });
    match payload {
        Some(bytes) if bytes.starts_with(b"\xfd7zXZ\0") => Ok((Packing::Xz, bytes)),
        Some(bytes) if bytes.starts_with(b"\x28\xb5\x2f\xfd") => Ok((Packing::Zstd, bytes)),
        Some(_) => Err("packed by neither xz nor zstd".into()),
        None => Err("it is cut off".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(payload: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 3 * 512 + 16];
        image[0x1f1] = 2;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x248..0x24c].copy_from_slice(&16_u32.to_le_bytes());
        image[0x24c..0x250].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        image.extend_from_slice(payload);
        image.extend_from_slice(b"what follows");
        image
    }

    #[test]
    fn finds_payload_without_trailing_size() {
        let image = image(b"\xfd7zXZ\0kernelSIZE");
        assert_eq!(find(&image).unwrap(), (Packing::Xz, &b"\xfd7zXZ\0kernel"[..]));
    }

    #[test]
    fn recognizes_arm_kernel() {
        let mut arm = vec![0; 64];
        arm[0x38..0x3c].copy_from_slice(b"ARM\x64");
        assert!(is_arm64(&arm));
        assert!(!is_arm64(&image(b"\xfd7zXZ\0kernelSIZE")));
    }

    #[test]
    fn error_explains_missing_payload() {
        let message = |image: &[u8]| find(image).unwrap_err().to_string();
        assert!(message(&[0; 100]).contains("not a bzImage"));
        assert!(message(&image(b"\x1f\x8bgzip")).contains("neither"));
        assert!(message(&image(b"\xfd7zXZ\0kernelSIZE")[..1560]).contains("cut off"));
    }
}

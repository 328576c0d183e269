//! What nvidia-smi reports about a GPU.

/// A GPU as nvidia-smi lists it. What it doesn't report is `None`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SeenGpu<'a> {
    pub(super) node: &'a str,
    pub(super) index: &'a str,
    pub(super) name: String,
    pub(super) clock_mhz: Option<f64>,
    pub(super) max_clock_mhz: Option<f64>,
    pub(super) power_w: Option<f64>,
    pub(super) default_power_w: Option<f64>,
    pub(super) temperature_c: Option<f64>,
    pub(super) used_mib: Option<f64>,
    pub(super) total_mib: Option<f64>,
    pub(super) uncorrected: Option<f64>,
    pub(super) reasons: Option<u64>,
}

impl<'a> SeenGpu<'a> {
    /// Reads a line with the fields that `gpus.sh` asks for. `None` if it is something else, such as an error.
    pub(super) fn read(node: &'a str, line: &'a str) -> Option<SeenGpu<'a>> {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        let [
            index,
            ref name @ ..,
            clock,
            max_clock,
            power,
            default_power,
            temperature,
            used,
            total,
            uncorrected,
            reasons,
        ] = cells[..]
        else {
            return None;
        };
        if name.is_empty() || index.is_empty() || !index.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        // Such as `[N/A]`.
        let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
        Some(SeenGpu {
            node,
            index,
            name: name.join(", "),
            clock_mhz: number(clock),
            max_clock_mhz: number(max_clock),
            power_w: number(power),
            default_power_w: number(default_power),
            temperature_c: number(temperature),
            used_mib: number(used),
            total_mib: number(total),
            uncorrected: number(uncorrected),
            reasons: reasons.strip_prefix("0x").and_then(|bits| u64::from_str_radix(bits, 16).ok()),
        })
    }

    pub(super) fn label(&self) -> String {
        format!("{} GPU {}", self.node, self.index)
    }
}

// Light and dark: as the system has it, until one switches.

const KEPT = 'tilecast-theme';
const theme = {light: 'light', dark: 'dark'};

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === theme.dark : matchMedia('(prefers-color-scheme: dark)').matches;
}

function showTheme(button, chosen) {
  if (chosen) document.documentElement.dataset.theme = chosen;
  button.setAttribute('aria-pressed', String(isDark()));
}

function switchTheme(button) {
  const chosen = isDark() ? theme.light : theme.dark;
  localStorage.setItem(KEPT, chosen);
  showTheme(button, chosen);
}

/** Makes a button switch between light and dark. @param {HTMLButtonElement} button */
export function themeButton(button) {
  showTheme(button, localStorage.getItem(KEPT));
  button.addEventListener('click', () => switchTheme(button));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => showTheme(button, ''));
}

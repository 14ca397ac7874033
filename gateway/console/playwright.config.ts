import { defineConfig } from '@playwright/test'

export default defineConfig({
  testDir: 'test', outputDir: '../../.cache/console-test', reporter: 'list', workers: 1, timeout: 90_000, expect: { timeout: 20_000 }, forbidOnly: !!process.env.CI,
  use: {
    viewport: { width: 1280, height: 900 },
    permissions: ['clipboard-read', 'clipboard-write'],
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
      args: process.getuid?.() === 0 ? ['--no-sandbox'] : [], // Chromium's sandbox does not start for root
    },
  },
})
